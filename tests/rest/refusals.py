"""What an answer with one error says."""


def refusal(answer) -> tuple[int, int, str | None]:
    """Status, code and pointer of an answer with one error."""
    (error,) = answer.json["errors"]
    assert answer.json["result"] is None
    assert answer.json["success"] is False
    return answer.status, error["code"], error.get("source", {}).get("pointer")


def words(answer) -> str:
    return answer.json["errors"][0]["message"]

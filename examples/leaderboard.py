"""A leaderboard in SQL: best score per player, ranks, pages, all from one object per game.

POST /objects/Leaderboard/chess/submit   {"args": ["ann", 1200]}
POST /objects/Leaderboard/chess/top      {"kwargs": {"count": 3}}
GET  /objects/Leaderboard/chess/fetch/   the first ten as text
"""

from edgestead import Response, StatefulObject

TOP_MAX = 100


class Leaderboard(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.sql = self.ctx.storage.sql
        self.sql.exec(
            """
            CREATE TABLE IF NOT EXISTS scores (player TEXT PRIMARY KEY, best INTEGER NOT NULL, games INTEGER);
            CREATE INDEX IF NOT EXISTS by_score ON scores (best DESC)
            """
        )

    async def submit(self, player: str, score: int) -> dict:
        """Record a game. Gives the player's best score, games and rank."""
        row = self.sql.exec(
            """
            INSERT INTO scores VALUES (?, ?, 1)
            ON CONFLICT DO UPDATE SET best = max(best, excluded.best), games = games + 1
            RETURNING best, games
            """,
            player,
            score,
        ).one()
        return {"player": player, **row, "rank": self._rank(row["best"])}

    def _rank(self, score: int) -> int:
        return self.sql.exec("SELECT count(*) + 1 AS rank FROM scores WHERE best > ?", score).one()["rank"]

    async def top(self, count: int = 10) -> list:
        """The best players, with their ranks."""
        rows = self.sql.exec(
            "SELECT rank() OVER (ORDER BY best DESC) AS rank, player, best FROM scores "
            "ORDER BY best DESC, player LIMIT ?",
            max(0, min(count, TOP_MAX)),
        )
        return rows.to_list()

    async def remove(self, player: str) -> bool:
        """Take a player off the board."""
        return self.sql.exec("DELETE FROM scores WHERE player = ?", player).rows_written > 0

    async def fetch(self, request) -> Response:
        lines = [f"{row['rank']:>3} {row['best']:>8} {row['player']}" for row in await self.top()]
        return Response("\n".join(lines) + "\n")

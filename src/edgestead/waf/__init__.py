"""Request to verdict: the rule engine. No I/O."""

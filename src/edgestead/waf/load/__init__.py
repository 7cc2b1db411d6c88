"""From a parsed rule set to rules that run."""

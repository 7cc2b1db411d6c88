"""The phases that a request and its answer pass: rules, and what they see."""

"""Plugins of the whole checkout: the product's own, which nothing installed names here, and a guard."""

pytest_plugins = [
    "edgestead.testing.plugin",
    "tests.support.leftovers",
    "tests.support.follower",
    "tests.support.lent",
    "tests.support.postgres",
    "tests.support.s3",
]

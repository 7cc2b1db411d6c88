"""The product's own pytest plugin, as in a checkout, where nothing is installed that would name it."""

pytest_plugins = ["edgestead.testing.plugin"]

"""Types of `self.env` for type checkers and editors.

Owns  the text of the module that describes them.
Not   loading; what happens at run time, where `env` is `env.Env`.

A method of another object is called as it is declared, so the class itself describes what stands behind
`env.Class["name"]`.
"""

from collections.abc import Iterable, Mapping

from edgestead.objects.runtime.classes import ClassInfo

_HEAD = '''"""Types of `self.env`. Made by `edgecli objects types`.

Make it again when classes or bindings change.
"""

'''
_FILE_PREFIX = "edgestead_objects_"


def module_text(classes: Mapping[str, ClassInfo], bindings: Iterable[str]) -> str:
    """A module with the class `Env`."""
    homes = {name: info.kind.__module__.removeprefix(_FILE_PREFIX) for name, info in classes.items()}
    aliases = {home: f"_{number}" for number, home in enumerate(sorted(set(homes.values())))}
    lines = [f"import {home} as {alias}" for home, alias in aliases.items()]
    lines += ["", "from edgestead import KeyValues, Namespace", "", "", "class Env:"]
    lines += [f"    {name}: Namespace[{aliases[homes[name]]}.{name}]" for name in sorted(classes)]
    lines += [f"    {name}: KeyValues" for name in sorted(bindings)]
    return _HEAD + "\n".join(lines) + "\n"

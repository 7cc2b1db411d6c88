"""Objects that leave this process because their slot does.

Owns  which objects in memory are of a slot; having them leave memory.
Not   slots and who has them (`cluster.slots`); what the log has of a slot.
"""

from collections.abc import Callable, Iterable

from edgestead.objects.errors import ObjectReset
from edgestead.objects.runtime.node import Key, Node
from edgestead.store.objectlog import ObjectRef


class Moving:
    """Makes itself known to a node. `slot_of` takes a class's name and an id."""

    def __init__(self, node: Node, slot_of: Callable[[str, str], int]) -> None:
        self._node, self._slot_of = node, slot_of
        self._keys: dict[int, dict[Key, None]] = {}  # in memory
        node.begun, node.left = self._begun, self._left

    def _begun(self, key: Key) -> None:
        self._keys.setdefault(self._slot_of(*key), {})[key] = None

    def _left(self, key: Key) -> None:
        slot = self._slot_of(*key)
        if (keys := self._keys.get(slot)) is not None:
            keys.pop(key, None)
            if not keys:
                del self._keys[slot]

    def let_go(self, slot: int) -> bool:
        """Have the slot's idle objects leave memory; True when none of it is left. To be asked again."""
        keys = self._keys.get(slot, {})
        for key in list(keys):
            if self._node.evict(key) or not self._node.is_here(key):
                keys.pop(key, None)
        if not keys:
            self._keys.pop(slot, None)
        return not keys

    def abandon(self, slots: Iterable[int]) -> None:
        """Others may have these slots: what runs in them is reset, and answers nothing."""
        for slot in slots:
            for class_name, object_id in list(self._keys.get(slot, {})):
                instance = self._node.find_live(ObjectRef(class_name, object_id))
                if instance is not None and not self._node.evict((class_name, object_id)):
                    instance.reset(ObjectReset("The object lives in another process now."))
            self.let_go(slot)

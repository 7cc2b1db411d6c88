"""REST face of a zone's settings.

Owns  /zones/{zone_id}/settings and what is below it.
Not   DNS settings (`rest.routes.dns_settings`).
"""

from collections.abc import Sequence
from typing import Any

from edgestead.changes import CHANGES, Change
from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.envelope import REMARK, Message
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import Answers
from edgestead.rest.routing import Answer, route
from edgestead.usecases.access.authorise import PLATFORM
from edgestead.usecases.zone import settings
from edgestead.usecases.zone.settings import SettingBody, SettingsBody, SettingView

_SETTINGS = "/zones/{zone_id}/settings"
_SETTING = Answers(SettingView)
_READ, _WRITE = "Zone Settings Read", "Zone Settings Write"


@route("GET", _SETTINGS, permission=_READ, family=PLATFORM)
def list_settings(zone_id: str, api: AppContext, call: Call) -> list[SettingView]:
    """Every setting of a zone. No paging."""
    return api.barrier.read(lambda reader: settings.listed(call, reader, zone_id))


@route("PATCH", _SETTINGS, permission=_WRITE, family=PLATFORM, answers=Answers(list[SettingView]))
async def patch_settings(
    zone_id: str, api: AppContext, call: Call, body: SettingsBody, write: Write
) -> Answer:
    """Change some settings, all of them or none; every bad item is named."""
    sent = {item.id for item in body.items or ()}
    return await write(
        lambda tx: settings.patch_all(call, tx, api.platform, zone_id, body),
        lambda views: _with_remarks(views, [view for view in views if view.id in sent]),
    )


@route("GET", f"{_SETTINGS}/{{setting}}", permission=_READ, family=PLATFORM)
def show_setting(zone_id: str, setting: str, api: AppContext, call: Call) -> SettingView:
    """One setting."""
    return api.barrier.read(lambda reader: settings.show(call, reader, zone_id, setting))


@route("PATCH", f"{_SETTINGS}/{{setting}}", permission=_WRITE, family=PLATFORM, answers=_SETTING)
async def patch_setting(
    zone_id: str, setting: str, api: AppContext, call: Call, body: SettingBody, write: Write
) -> Answer:
    """Change one setting."""
    return await write(
        lambda tx: settings.patch(call, tx, api.platform, zone_id, setting, body),
        lambda view: _with_remarks(view, [view]),
    )


def _with_remarks(result: object, changed: Sequence[SettingView]) -> Answer:
    messages = [Message(REMARK, text) for text in settings.remarks(changed)]
    return Answer(envelope.success(result, messages))


def _enter_dated(change: Change) -> None:
    """A setting that a date changed has routes of its own, which say so. A literal segment hides the
    parameter, so it has PATCH even where its row names POST in its place.
    """
    path = f"{_SETTINGS}/{change.setting}"
    methods = dict.fromkeys([*(one.method for one in change.endpoints), "PATCH"])

    def show(zone_id: str, api: AppContext, call: Call) -> SettingView:
        return show_setting(zone_id, change.setting, api, call)

    async def patch(zone_id: str, api: AppContext, call: Call, body: SettingBody, write: Write) -> Answer:
        return await patch_setting(zone_id, change.setting, api, call, body, write)

    for method in methods:
        handler: Any = show if method == "GET" else patch
        handler.__name__ = f"{method.lower()}_setting_{change.setting}"
        handler.__doc__ = f"The setting that {'ended' if change.removed else 'changed'} on {change.day}."
        permission, answers = (_READ, None) if method == "GET" else (_WRITE, _SETTING)
        route(method, path, permission=permission, family=PLATFORM, answers=answers)(handler)


for _change in CHANGES:
    if _change.setting:
        _enter_dated(_change)

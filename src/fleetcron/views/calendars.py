"""The calendars that the fleet knows."""

from fleetcron.model.calendar import CalendarDocument
from fleetcron.store.store import Store


async def stored_calendars(store: Store) -> list[CalendarDocument]:
    _, tables = await store.almanac.all("calendar")
    return [CalendarDocument.from_body(table.part.tenant, table.part.name, table.body) for table in tables]

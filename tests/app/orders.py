"""A shop whose orders and fleetcron's tables are in one PostgreSQL database."""

import os

import asyncpg  # type: ignore[import-untyped]

from fleetcron import guarded
from fleetcron.executors.context import Context

TABLES = "CREATE TABLE orders (id BIGINT PRIMARY KEY); CREATE TABLE shipments (order_id BIGINT, attempt INT, key TEXT)"


async def ship(ctx: Context, payload: dict[str, int]) -> None:
    connection = await asyncpg.connect(os.environ["SHOP_URL"])
    try:
        sql = "INSERT INTO shipments VALUES ($1, $2, $3)"
        await connection.execute(sql, payload["order"], ctx.attempt, ctx.idempotency_key)
    finally:
        await connection.close()


async def book(ctx: Context, payload: dict[str, int]) -> None:
    connection = await asyncpg.connect(os.environ["SHOP_URL"])
    try:
        async with guarded(ctx, connection):
            await connection.execute("INSERT INTO orders VALUES ($1)", payload["order"])
    finally:
        await connection.close()

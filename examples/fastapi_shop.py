"""A shop on FastAPI and PostgreSQL. An order and the run that sends its invoice are one transaction.

    pip install 'fleetcron[postgres]'
    SHOP_URL=postgresql://shop@localhost/shop uvicorn fastapi_shop:web

This process answers requests, plans and works; in a fleet, `fleetcron worker --app fastapi_shop:app` works elsewhere.
"""

import os
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel

from fleetcron import Fleetcron, guarded

URL = os.environ["SHOP_URL"]
TABLE = "CREATE TABLE IF NOT EXISTS orders (id BIGINT GENERATED ALWAYS AS IDENTITY, customer TEXT, invoice TEXT UNIQUE)"
app = Fleetcron(URL, name="shop")


class Invoice(BaseModel):
    order: int
    customer: str


@app.job(on_demand=True)
async def send_invoice(ctx, payload: Invoice):
    ctx.log("invoice for", payload.customer)
    connection = await asyncpg.connect(URL)
    try:
        async with guarded(ctx, connection):  # a worker that has lost this run cannot write here any more
            sql = "UPDATE orders SET invoice = $1 WHERE id = $2"
            await connection.execute(sql, ctx.idempotency_key, payload.order)
    finally:
        await connection.close()


@asynccontextmanager
async def lifespan(web):
    async with asyncpg.create_pool(URL, min_size=1) as pool:
        await pool.execute(TABLE)
        web.state.pool = pool
        async with app.lifespan(web):  # or, without a pool of your own: FastAPI(lifespan=app.lifespan)
            yield


web = FastAPI(title="shop", lifespan=lifespan)
web.mount("/fleetcron", app.asgi())


class Order(BaseModel):
    customer: str


@web.post("/orders", status_code=201)
async def place(order: Order, request: Request):
    async with request.app.state.pool.acquire() as connection, connection.transaction():
        sql = "INSERT INTO orders (customer) VALUES ($1) RETURNING id"
        number = await connection.fetchval(sql, order.customer)
        made = await app.enqueue_in(
            connection, send_invoice, Invoice(order=number, customer=order.customer), key=f"order-{number}"
        )
        if order.customer == "nobody":
            raise HTTPException(409, "nobody cannot order")  # neither the order nor its run has ever been
    return {"order": number, "run": made.run_id}


@web.get("/orders/{number}")
async def look(number: int, request: Request):
    found = await request.app.state.pool.fetchrow("SELECT id, customer, invoice FROM orders WHERE id = $1", number)
    if found is None:
        raise HTTPException(404, "there is no such order")
    return dict(found)

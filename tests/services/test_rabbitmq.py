import asyncio

import aio_pika


def test_a_queue_hands_out_what_was_published(rabbitmq_server: str) -> None:
    async def scenario() -> None:
        async with await aio_pika.connect(rabbitmq_server) as connection:
            channel = await connection.channel(publisher_confirms=True)
            queue = await channel.declare_queue("reports", durable=True)
            await channel.default_exchange.publish(aio_pika.Message(b"run-1"), routing_key="reports")
            message = await queue.get(timeout=10)
            await message.ack()
            assert message.body == b"run-1"

    asyncio.run(scenario())

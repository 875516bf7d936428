import asyncio

import nats


def test_jetstream_hands_out_what_was_published(nats_server: str) -> None:
    async def scenario() -> None:
        client = await nats.connect(nats_server)
        try:
            stream = client.jetstream()
            await stream.add_stream(name="reports", subjects=["reports.*"])
            await stream.publish("reports.nightly", b"run-1")
            reader = await stream.pull_subscribe("reports.*", durable="reader")
            (message,) = await reader.fetch(1, timeout=10)
            await message.ack_sync()
            assert message.data == b"run-1"
        finally:
            await client.close()

    asyncio.run(scenario())

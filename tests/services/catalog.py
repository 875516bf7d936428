"""Every service the tests may ask for. A new one is a file like its neighbours, a line here, a line in conftest.py."""

from tests.services import chromium, nats, postgres, prometheus, rabbitmq, redis, sqs, valkey
from tests.services.service import Service

SERVICES: dict[str, Service] = {
    service.name: service
    for service in (
        postgres.POSTGRES18,
        postgres.POSTGRES16,
        valkey.VALKEY,
        redis.REDIS,
        nats.NATS,
        rabbitmq.RABBITMQ,
        sqs.SQS,
        chromium.CHROMIUM,
        prometheus.PROMETHEUS,
    )
}

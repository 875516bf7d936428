"""APScheduler 3 with its PostgreSQL store, four jobs a second: `python -m bench.delay_apscheduler URL`."""

import os
import sys
import time
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.blocking import BlockingScheduler

QUARTER_MS = 250


def note() -> None:
    """Jobs stand a quarter of a second apart: the instant is the last multiple of it, or the next, if it is early."""
    now_ms = time.time_ns() / 1e6
    late_ms = now_ms % QUARTER_MS
    delay_ms = late_ms if late_ms < QUARTER_MS - 50 else late_ms - QUARTER_MS
    with open(os.environ["BENCH_DELAYS"], "a") as log:
        log.write(f"{delay_ms:.3f} {now_ms / 1000:.6f}\n")


def main(url: str) -> None:
    store = SQLAlchemyJobStore(url=url.replace("postgresql://", "postgresql+psycopg://"), tablename="peer_jobs")
    scheduler = BlockingScheduler(
        jobstores={"default": store}, executors={"default": ThreadPoolExecutor(8)}, timezone=UTC
    )
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    for number in range(4):
        start = begin + timedelta(milliseconds=number * QUARTER_MS)
        scheduler.add_job(note, "interval", seconds=1, start_date=start, id=f"quarter-{number}", replace_existing=True)
    scheduler.start()


if __name__ == "__main__":
    main(sys.argv[1])

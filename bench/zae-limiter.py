"""Acquires with zae-limiter: for each line `keys callers milliseconds` on stdin, prints the acquires per second."""

import asyncio
import os
import sys
import time
import warnings

warnings.simplefilter("ignore")

# zae-limiter may print: the figures have a file descriptor of their own.
FIGURES = os.fdopen(os.dup(sys.stdout.fileno()), "w")
sys.stdout = sys.stderr

from zae_limiter import Limit, RateLimiter, Repository  # noqa: E402

TABLE, ENDPOINT, REGION = sys.argv[1:4]
PLENTY = 1_000_000_000
LIMITS = [
    Limit.custom("rph", capacity=PLENTY, refill_amount=PLENTY, refill_period_seconds=3600),
    Limit.custom("tph", capacity=PLENTY, refill_amount=PLENTY, refill_period_seconds=3600),
]


async def per_second(limiter, keys, callers, milliseconds):
    start = time.monotonic()
    end = start + milliseconds / 1000
    started = 0

    async def call():
        nonlocal started
        while True:
            key = f"user-{started % keys}"
            started += 1
            async with limiter.acquire(entity_id=key, resource="gpt-4", consume={"rph": 1, "tph": 100}):
                pass
            if time.monotonic() >= end:
                return

    await asyncio.gather(*(call() for _ in range(callers)))
    return started / (time.monotonic() - start)


async def serve():
    # The table exists: nothing is deployed.
    repository = await Repository.open("default", stack=TABLE, region=REGION, endpoint_url=ENDPOINT)
    async with RateLimiter(repository=repository) as limiter:
        await limiter.set_system_defaults(LIMITS)
        for line in sys.stdin:
            keys, callers, milliseconds = map(int, line.split())
            print(await per_second(limiter, keys, callers, milliseconds), file=FIGURES, flush=True)


asyncio.run(serve())

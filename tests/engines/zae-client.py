"""Drives one release of zae-limiter: reads a request per line from stdin, and answers with a line of JSON.

The release is the one that is installed where this interpreter lives. Its constructors differ; the requests do not.
"""

import asyncio
import json
import os
import sys
import warnings
from datetime import timedelta

warnings.simplefilter("ignore")

# Some releases log to stdout: answers go out by a way of their own.
ANSWERS = os.fdopen(os.dup(sys.stdout.fileno()), "w")
sys.stdout = sys.stderr

try:
    from zae_limiter import Limit, RateLimiter
except ImportError:  # 0.5 loads it lazily
    from zae_limiter.limiter import RateLimiter
    from zae_limiter.models import Limit

TABLE, ENDPOINT, REGION = sys.argv[1:4]


def limit_of(rule):
    name, amount, seconds = rule["name"], rule["amount"], rule["seconds"]
    burst = rule.get("burst")
    if "session" in rule:
        return Limit.quota(name, amount, reset_after=timedelta(seconds=rule["session"]))
    if burst is None:
        made = Limit.custom(name, capacity=amount, refill_amount=amount, refill_period_seconds=seconds)
    else:
        made = burst_limit(name, amount, seconds, burst)
    if rule.get("soft"):
        from dataclasses import replace

        made = replace(made, soft=True)
    if "schedule" in rule:
        from zae_limiter.schedule import ScheduleEntry

        made = made.with_schedule((ScheduleEntry(cron=rule["schedule"], scale=0.5),))
    return made


def burst_limit(name, amount, seconds, burst):
    """Early releases have a burst beside the capacity, later ones a capacity above the refill."""
    try:
        return Limit.custom(name, capacity=amount, refill_amount=amount, refill_period_seconds=seconds, burst=burst)
    except TypeError:
        return Limit.custom(name, capacity=burst, refill_amount=amount, refill_period_seconds=seconds)


class Client:
    """A limiter of this release on the table of the test."""

    limiter = None
    repository = None

    async def open(self, how):
        if how == "legacy":
            self.limiter = RateLimiter(name="unused", region=REGION, endpoint_url=ENDPOINT)
            self.repository = self.limiter._repository
            self.repository.table_name = TABLE
        else:
            from zae_limiter import Repository

            # The table is there: nothing is deployed.
            self.repository = await Repository.open(how, stack=TABLE, region=REGION, endpoint_url=ENDPOINT)
            self.limiter = RateLimiter(repository=self.repository)
        await self.limiter.__aenter__()

    async def entity(self, id, parent=None, cascade=False):
        more = {"cascade": True} if cascade else {}
        await self.limiter.create_entity(id, name=f"The {id}", parent_id=parent, metadata={"tier": "gold"}, **more)

    async def limits(self, rules, entity=None, resource=None, system=False):
        made = [limit_of(rule) for rule in rules]
        if system:
            await self.limiter.set_system_defaults(made)
        elif entity is None:
            await self.limiter.set_resource_defaults(resource, made)
        elif resource is None:
            await self.limiter.set_limits(entity, made)
        else:
            await self.limiter.set_limits(entity, made, resource=resource)

    async def acquire(self, entity, resource, consume, rules=None):
        limits = {} if rules is None else {"limits": [limit_of(rule) for rule in rules]}
        async with self.limiter.acquire(entity_id=entity, resource=resource, consume=consume, **limits):
            pass

    async def disable(self, entity=None, resource=None):
        if entity is None:
            await self.repository.disable_resource(resource)
        else:
            await self.repository.disable_entity(entity, resource=resource)

    async def usage(self, entity, resource, limit, tokens, at_ms, window="hourly"):
        import boto3

        try:
            from zae_limiter_aggregator.processor import ConsumptionDelta, update_snapshot
        except ImportError:
            from zae_limiter.aggregator.processor import ConsumptionDelta, update_snapshot
        where = {}
        if "namespace_id" in ConsumptionDelta.__dataclass_fields__:
            where["namespace_id"] = self.repository._namespace_id
        delta = ConsumptionDelta(
            entity_id=entity, resource=resource, limit_name=limit, tokens_delta=tokens * 1000, timestamp_ms=at_ms, **where
        )
        table = boto3.resource("dynamodb", endpoint_url=ENDPOINT, region_name=REGION).Table(TABLE)
        update_snapshot(table, delta, window, 90)

    async def call(self, target, method, args):
        """Anything else that only some releases have."""
        await getattr(getattr(self, target), method)(**args)


async def serve():
    client = Client()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            await getattr(client, request.pop("do"))(**request)
            answer = {"ok": True}
        except Exception as error:
            answer = {"ok": False, "error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), file=ANSWERS, flush=True)


asyncio.run(serve())

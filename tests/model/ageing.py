"""Time passes without anybody waiting: what is written moves into the past."""

from django.db import connection

from tests.model import world

UNIT = 2_200  # seconds of the smallest step in time; no sum of units comes near to a limit

# Times to live shrink too. ARGV seconds.
_AGE = """
for _, key in ipairs(redis.call('KEYS', 'teamdesk:job:*')) do
    local is_record = redis.call('TYPE', key).ok == 'hash'
    local at = is_record and tonumber(redis.call('HGET', key, 'at') or '')
    if at then redis.call('HSET', key, 'at', string.format('%.0f', at - ARGV[1] * 1000000)) end
    local left = redis.call('PTTL', key)
    if left >= 0 then redis.call('PEXPIRE', key, math.max(left - ARGV[1] * 1000, 0)) end
end
for _, key in ipairs(redis.call('KEYS', 'teamdesk:watermark:*')) do
    local at = tonumber(redis.call('GET', key))
    redis.call('SET', key, string.format('%.0f', math.max(at - ARGV[1] * 1000000, 0)))
end
for _, job in ipairs(redis.call('ZRANGE', 'teamdesk:delayed', 0, -1)) do
    redis.call('ZINCRBY', 'teamdesk:delayed', -ARGV[1] * 1000000, job)
end
"""


def age(seconds: int) -> None:
    """Time passes: every time that is written anywhere moves into the past, all by the same."""
    columns = {
        "tasks_backgroundtask": (*world.TIMES, "created_at", "started_at"),
        "tasks_taskattempt": ("started_at", "finished_at"),
    }
    with connection.cursor() as cursor:
        for table, names in columns.items():
            moved = ", ".join(
                f"{name} = {name} - make_interval(secs => {seconds})" for name in names
            )
            cursor.execute(f"UPDATE {table} SET {moved}")
    world.client().eval(_AGE, 0, seconds)

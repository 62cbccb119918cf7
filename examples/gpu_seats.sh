#!/bin/sh
# Two GPU seats, five batch jobs, `meshlock exec`. On a real cluster every machine runs an
# agent, and jobs on all of them share the seats; here one agent is enough to see it.
set -eu
cd "$(mktemp -d)"
export MESHLOCK_SOCKET="$PWD/agent.sock"

meshlock agent --name machine-1 --state none --pool gpu=2 --log-level warning &
agent=$!
trap 'kill $agent; wait $agent || true; rm -rf "$PWD"' EXIT
while [ ! -S "$MESHLOCK_SOCKET" ]; do sleep 0.05; done

jobs=""
for job in 1 2 3 4 5; do
    meshlock exec --pool gpu --priority $job --timeout 30 -- \
        sh -c "echo job $job begins, fence \$MESHLOCK_FENCE; sleep 0.2; echo job $job ends" &
    jobs="$jobs $!"
done
wait $jobs

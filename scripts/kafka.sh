#!/bin/sh
# A Kafka broker for tests and for trying out: fetched by Maven with kafka/pom.xml, run as one KRaft node.
#   kafka.sh fetch          the jars of the broker and of Spark's connector, into .kafka
#   kafka.sh start [PORT]   fetch, then run the broker in the background until `stop`
#   kafka.sh run PORT DIR   run a broker in the foreground with its data in DIR
#   kafka.sh stop
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
jars=$root/.kafka

fetch() {
    if [ -e "$jars/.ready" ] && [ ! "$root/kafka/pom.xml" -nt "$jars/.ready" ]; then
        return 0
    fi
    if ! command -v mvn >/dev/null; then
        echo "kafka: Maven (mvn) is needed to fetch Kafka; on Debian and Ubuntu: apt-get install maven" >&2
        return 1
    fi
    # What is there stays until all of the new is there.
    rm -rf "$jars/new"
    mkdir -p "$jars"
    for part in broker connector; do
        mvn -B -q -f "$root/kafka/pom.xml" -P "$part" dependency:copy-dependencies \
            -DoutputDirectory="$jars/new/$part" -DincludeScope=runtime </dev/null >"$jars/maven.log" 2>&1 || {
            echo "kafka: Maven could not fetch the jars of the $part (see $jars/maven.log); is Maven Central within reach?" >&2
            return 1
        }
    done
    rm -rf "$jars/broker" "$jars/connector"
    mv "$jars/new/broker" "$jars/new/connector" "$jars"
    rm -rf "$jars/new"
    touch "$jars/.ready"
}

run() {
    port=$1 data=$2
    mkdir -p "$data"
    cat >"$data/server.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=$data/log
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
EOF
    cat >"$data/log4j.properties" <<EOF
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %c %m%n
log4j.logger.kafka.server.KafkaRaftServer=INFO
EOF
    # The star of the class path is Java's own.
    set -f
    java="java -Xmx512m -Dlog4j.configuration=file:$data/log4j.properties -cp $jars/broker/*"
    if [ ! -e "$data/log/meta.properties" ]; then
        $java kafka.tools.StorageTool format --ignore-formatted -t HeadgateKafkaTestsAAAAA -c "$data/server.properties"
    fi
    exec $java kafka.Kafka "$data/server.properties"
}

case ${1:-} in
fetch) fetch ;;
run) run "$2" "$3" ;;
start)
    if [ -e "$jars/pid" ] && kill -0 "$(cat "$jars/pid")" 2>/dev/null; then
        echo "kafka: a broker runs already; scripts/kafka.sh stop ends it"
        exit 0
    fi
    fetch
    port=${2:-9092}
    mkdir -p "$jars/data"
    sh "$0" run "$port" "$jars/data" </dev/null >"$jars/log" 2>&1 &
    echo $! >"$jars/pid"
    waited=0
    until grep -q "Kafka Server started" "$jars/log"; do
        if ! kill -0 "$(cat "$jars/pid")" 2>/dev/null || [ "$waited" -ge 120 ]; then
            echo "kafka: the broker did not start; the end of $jars/log:" >&2
            tail -n 5 "$jars/log" >&2
            exit 1
        fi
        waited=$((waited + 1))
        sleep 1
    done
    echo "kafka: a broker listens on 127.0.0.1:$port; its log is $jars/log; scripts/kafka.sh stop ends it"
    ;;
stop)
    if [ -e "$jars/pid" ]; then
        kill "$(cat "$jars/pid")" 2>/dev/null || true
        rm "$jars/pid"
    fi
    ;;
*)
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
    ;;
esac

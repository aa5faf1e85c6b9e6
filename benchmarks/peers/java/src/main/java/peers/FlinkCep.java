package peers;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.RichSinkFunction;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.util.Collector;

/**
 * Flink CEP in a local cluster inside this process, one operator a pattern, which is all the library offers.
 *
 * <p>The ticks of a name are cut out before its patterns. Processor time runs from the first tick that the source sends
 * to the moment the last sink closes, so the start of the job does not count.
 */
final class FlinkCep implements Peer {
    private static final OperatingSystemMXBean MACHINE =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static List<String> lines;
    private static int passes;
    private static volatile long begun;
    private static volatile long ended;
    private static final List<long[]> FOUND = new ArrayList<>();
    private final List<Rise> rises = new ArrayList<>();

    @Override
    public void build(List<String> rules) throws Exception {
        for (String rule : rules) {
            rises.add(Main.JSON.readValue(rule, Rise.class));
        }
    }

    @Override
    public Outcome run(List<String> events, int times, List<List<Integer>> kept) throws Exception {
        lines = events;
        passes = times;
        FOUND.clear();
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(1);
        flink.getConfig().enableObjectReuse();
        DataStream<Tick> ticks = flink.addSource(new Ticks()).returns(Tick.class);
        DataStream<long[]> all = null;
        for (int i = 0; i < rises.size(); i++) {
            DataStream<long[]> one = matches(ticks, rises.get(i), i);
            all = all == null ? one : all.union(one);
        }
        all.addSink(new Keep());
        flink.execute();
        if (kept != null) {
            for (long[] match : FOUND) {
                kept.get((int) match[1]).add((int) match[0]);
            }
        }
        return new Outcome(FOUND.size(), (ended - begun) / 1e9);
    }

    private static DataStream<long[]> matches(DataStream<Tick> ticks, Rise rise, int number) {
        Pattern<Tick, Tick> pattern =
                Pattern.<Tick>begin("a")
                        .where(SimpleCondition.of(t -> t.price > rise.above))
                        .next("b")
                        .where(new Dearer("a", rise.factor))
                        .next("c")
                        .where(new Dearer("b", rise.factor));
        DataStream<Tick> named = ticks.filter(t -> t.name.equals(rise.name)).keyBy(t -> t.name);
        return CEP.pattern(named, pattern).inProcessingTime().process(new Last(number));
    }

    private static final class Dearer extends IterativeCondition<Tick> {
        private final String before;
        private final double factor;

        Dearer(String before, double factor) {
            this.before = before;
            this.factor = factor;
        }

        @Override
        public boolean filter(Tick tick, Context<Tick> context) throws Exception {
            return tick.price > factor * context.getEventsForPattern(before).iterator().next().price;
        }
    }

    private static final class Last extends PatternProcessFunction<Tick, long[]> {
        private final int number;

        Last(int number) {
            this.number = number;
        }

        @Override
        public void processMatch(Map<String, List<Tick>> match, Context context, Collector<long[]> out) {
            out.collect(new long[] {number, match.get("c").get(0).at});
        }
    }

    private static final class Ticks implements SourceFunction<Tick> {
        @Override
        public void run(SourceContext<Tick> to) throws Exception {
            begun = MACHINE.getProcessCpuTime();
            for (int n = 0; n < passes; n++) {
                for (String line : lines) {
                    to.collect(Main.JSON.readValue(line, Tick.class));
                }
            }
        }

        @Override
        public void cancel() {}
    }

    private static final class Keep extends RichSinkFunction<long[]> {
        @Override
        public void invoke(long[] match, Context context) {
            FOUND.add(match);
        }

        @Override
        public void close() {
            ended = MACHINE.getProcessCpuTime();
        }
    }
}

package peers;

import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.DeploymentOptions;
import com.espertech.esper.runtime.client.EPDeployment;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import java.util.ArrayList;
import java.util.List;

/** Esper, with one prepared statement deployed once a pattern, as its manual advises for many alike. */
final class Esper implements Peer {
    private static final String STATEMENT =
            "select c.at as at from pattern [every a=Tick(name=?:name:string and price > ?:above:double)"
                    + " -> b=Tick(name=?:name:string) -> c=Tick(name=?:name:string)]"
                    + " where b.price > ?:factor:double * a.price and c.price > ?:factor:double * b.price";
    private EPRuntime runtime;
    private final List<Integer> found = new ArrayList<>();

    @Override
    public void build(List<String> rules) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("Tick", Tick.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        runtime = EPRuntimeProvider.getRuntime("peers", configuration);
        EPCompiled compiled =
                EPCompilerProvider.getCompiler().compile(STATEMENT, new CompilerArguments(configuration));
        for (int i = 0; i < rules.size(); i++) {
            Rise rise = Main.JSON.readValue(rules.get(i), Rise.class);
            int number = i;
            DeploymentOptions options = new DeploymentOptions();
            options.setStatementSubstitutionParameter(
                    statement -> {
                        statement.setObject("name", rise.name);
                        statement.setObject("above", rise.above);
                        statement.setObject("factor", rise.factor);
                    });
            EPDeployment deployed = runtime.getDeploymentService().deploy(compiled, options);
            deployed.getStatements()[0].addListener(
                    (fresh, old, statement, from) -> {
                        for (int n = 0; n < fresh.length; n++) {
                            found.add(number);
                        }
                    });
        }
    }

    @Override
    public Outcome run(List<String> events, int times, List<List<Integer>> kept) throws Exception {
        long total = 0;
        for (int n = 0; n < times; n++) {
            for (int e = 0; e < events.size(); e++) {
                found.clear();
                runtime.getEventService().sendEventBean(Main.JSON.readValue(events.get(e), Tick.class), "Tick");
                total += found.size();
                if (kept != null) {
                    kept.get(e).addAll(found);
                }
            }
        }
        return new Outcome(total, null);
    }
}

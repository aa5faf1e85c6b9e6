package peers;

import java.util.List;
import software.amazon.event.ruler.Machine;

/** Amazon's matcher behind EventBridge. */
final class EventRuler implements Peer {
    private final Machine machine = new Machine();

    @Override
    public void build(List<String> rules) throws Exception {
        for (int i = 0; i < rules.size(); i++) {
            machine.addRule(Integer.toString(i), rules.get(i));
        }
    }

    @Override
    public Outcome run(List<String> events, int times, List<List<Integer>> kept) throws Exception {
        long total = 0;
        for (int n = 0; n < times; n++) {
            for (int e = 0; e < events.size(); e++) {
                List<String> found = machine.rulesForJSONEvent(events.get(e));
                total += found.size();
                if (kept != null) {
                    for (String name : found) {
                        kept.get(e).add(Integer.parseInt(name));
                    }
                }
            }
        }
        return new Outcome(total, null);
    }
}

package peers;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads a workload and answers commands; see ../../../../../../harness.py for what is read and printed. */
public final class Main {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] given) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        Path folder = Path.of(given[1]);
        Peer peer = switch (given[0]) {
            case "event-ruler" -> new EventRuler();
            case "esper" -> new Esper();
            case "flink-cep" -> new FlinkCep();
            default -> throw new IllegalArgumentException(given[0]);
        };
        List<String> rules = Files.readAllLines(folder.resolve("rules-" + given[0] + ".jsonl"));
        List<String> events = Files.readAllLines(folder.resolve("events.jsonl"));
        out.println("{\"loaded\":" + events.size() + "}");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split(" ");
            switch (words[0]) {
                case "build" -> {
                    peer.build(rules);
                    out.println("{\"rules\":" + rules.size() + "}");
                }
                case "run" -> {
                    Peer.Outcome outcome = peer.run(events, Integer.parseInt(words[1]), null);
                    Map<String, Object> told = new LinkedHashMap<>();
                    told.put("matches", outcome.matches());
                    if (outcome.cpu() != null) {
                        told.put("cpu_s", outcome.cpu());
                    }
                    out.println(JSON.writeValueAsString(told));
                }
                default -> {
                    List<List<Integer>> kept = new ArrayList<>();
                    events.forEach(e -> kept.add(new ArrayList<>()));
                    peer.run(events, 1, kept);
                    kept.forEach(k -> k.sort(null));
                    out.println(JSON.writeValueAsString(kept));
                }
            }
        }
        System.exit(0);
    }
}

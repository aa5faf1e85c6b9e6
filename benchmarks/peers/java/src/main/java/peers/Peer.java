package peers;

import java.util.List;

/** A system under measurement. Events are lines of JSON; a match is the number of a rule. */
interface Peer {
    void build(List<String> rules) throws Exception;

    /** The events `times` over; the number of matches. Where `kept` is given, the matches of each event go there. */
    Outcome run(List<String> events, int times, List<List<Integer>> kept) throws Exception;

    /** `cpu` in seconds where the peer must tell it itself, because a pass has work around it that does not count. */
    record Outcome(long matches, Double cpu) {}
}

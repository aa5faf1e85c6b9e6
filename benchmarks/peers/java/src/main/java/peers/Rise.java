package peers;

import java.io.Serializable;

/** A pattern: a tick of `name` above `above`, the next `factor` times as dear, the one after again. */
public final class Rise implements Serializable {
    public String name;
    public double above;
    public double factor;
}

package peers;

/** One event of the stock workload. Public fields and an empty constructor make it a POJO for Flink. */
public final class Tick {
    public String name;
    public double price;
    public long vol;
    public long at;

    public Tick() {}

    public String getName() {
        return name;
    }

    public double getPrice() {
        return price;
    }

    public long getVol() {
        return vol;
    }

    public long getAt() {
        return at;
    }
}

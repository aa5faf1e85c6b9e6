// quamina as a peer: see ../harness.py for what is read and printed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	"quamina.net/go/quamina"
)

func lines(path string) [][]byte {
	text, err := os.ReadFile(path)
	check(err)
	var found [][]byte
	for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		found = append(found, []byte(line))
	}
	return found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	folder := os.Args[2]
	rules, events := lines(folder+"/rules-quamina.jsonl"), lines(folder+"/events.jsonl")
	matcher, err := quamina.New()
	check(err)
	out := bufio.NewWriter(os.Stdout)
	say := func(value any) {
		text, err := json.Marshal(value)
		check(err)
		fmt.Fprintln(out, string(text))
		check(out.Flush())
	}
	say(map[string]any{"loaded": len(events)})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "build":
			for i, rule := range rules {
				check(matcher.AddPattern(i, string(rule)))
			}
			say(map[string]any{"rules": len(rules)})
		case "run":
			times, err := strconv.Atoi(words[1])
			check(err)
			total := 0
			for n := 0; n < times; n++ {
				for _, event := range events {
					found, err := matcher.MatchesForEvent(event)
					check(err)
					total += len(found)
				}
			}
			say(map[string]any{"matches": total})
		case "matches":
			all := make([][]int, 0, len(events))
			for _, event := range events {
				found, err := matcher.MatchesForEvent(event)
				check(err)
				numbers := make([]int, 0, len(found))
				for _, x := range found {
					numbers = append(numbers, x.(int))
				}
				sort.Ints(numbers)
				all = append(all, numbers)
			}
			say(all)
		}
	}
}

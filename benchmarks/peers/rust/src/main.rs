//! a-tree as a peer: see ../../harness.py for what is read and printed.

use a_tree::{ATree, AttributeDefinition, Event};
use serde_json::{json, Value};
use std::io::{BufRead, Write};

fn lines(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::to_string).collect()
}

fn say(value: Value) {
    println!("{value}");
    std::io::stdout().flush().unwrap();
}

fn event_of(tree: &ATree<usize>, line: &str) -> Event {
    let read: Value = serde_json::from_str(line).unwrap();
    let mut builder = tree.make_event();
    for (name, value) in read.as_object().unwrap() {
        match value {
            Value::String(text) => builder.with_string(name, text).unwrap(),
            Value::Number(number) => builder.with_integer(name, number.as_i64().unwrap()).unwrap(),
            other => panic!("no such value in the workloads: {other}"),
        }
    }
    builder.build().unwrap()
}

fn main() {
    let folder = std::env::args().nth(2).unwrap();
    let about: Value = serde_json::from_str(&lines(&format!("{folder}/about.json"))[0]).unwrap();
    let rules: Vec<String> = lines(&format!("{folder}/rules-a-tree.jsonl"))
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events = lines(&format!("{folder}/events.jsonl"));
    let definitions: Vec<AttributeDefinition> = about["attributes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, kind)| match kind.as_str().unwrap() {
            "string" => AttributeDefinition::string(name),
            _ => AttributeDefinition::integer(name),
        })
        .collect();
    let mut tree: ATree<usize> = ATree::new(&definitions).unwrap();
    say(json!({"loaded": events.len()}));
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "build" => {
                for (number, rule) in rules.iter().enumerate() {
                    tree.insert(&number, rule).unwrap();
                }
                say(json!({"rules": rules.len()}));
            }
            "run" => {
                let times: usize = words[1].parse().unwrap();
                let mut total = 0;
                for _ in 0..times {
                    for event in &events {
                        total += tree.search(&event_of(&tree, event)).unwrap().matches().len();
                    }
                }
                say(json!({"matches": total}));
            }
            _ => {
                let mut all: Vec<Vec<usize>> = Vec::new();
                for event in &events {
                    let made = event_of(&tree, event);
                    let report = tree.search(&made).unwrap();
                    let mut numbers: Vec<usize> = report.matches().iter().map(|n| **n).collect();
                    numbers.sort_unstable();
                    all.push(numbers);
                }
                say(json!(all));
            }
        }
    }
}

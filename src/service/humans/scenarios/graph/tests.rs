//! Every rule of a graph with its text, and the order and number of its paths.

use serde_json::json;

use super::*;

fn definition(body: Value) -> Definition {
    serde_json::from_value(body).expect("a definition")
}

fn single(id: &str, data: Value) -> Value {
    json!({"id": id, "type": "single", "data": data})
}

fn says(id: &str, speaker: &str) -> Value {
    single(id, json!({"type": "exact", "speaker": speaker, "message": format!("This is {id}.")}))
}

fn edge(source: &str, target: &str) -> Value {
    json!({"id": format!("{source}-{target}"), "source": source, "target": target})
}

/// Returns a start, `nodes`, and an edge for each pair.
fn graph(nodes: &[Value], edges: &[(&str, &str)]) -> Definition {
    let nodes: Vec<Value> = [json!({"id": "s", "type": "start"})].iter().chain(nodes).cloned().collect();
    let edges: Vec<Value> = edges.iter().map(|(from, to)| edge(from, to)).collect();
    definition(json!({"nodes": nodes, "edges": edges}))
}

fn refusal(definition: &Definition) -> String {
    Graph::parse(definition).err().map(|error| error.to_string()).unwrap_or_default()
}

fn raw(nodes: Value, edges: Value) -> Definition {
    definition(json!({"nodes": nodes, "edges": edges}))
}

fn check(definition: &Definition, expect: &str) {
    assert_eq!(refusal(definition), expect, "{}", serde_json::to_string(definition).expect("JSON"));
}

#[test]
fn the_first_broken_rule_of_a_node_is_told() {
    let start = json!({"id": "s", "type": "start"});
    let one = |data: Value| graph(&[single("a", data)], &[("s", "a")]);
    let a = says("a", "agent");
    for (definition, expect) in [
        (raw(json!([{"id": ""}]), json!([])), "Node at index 0 must have a non-empty string id"),
        (raw(json!([start, {"id": 7}]), json!([])), "Node at index 1 must have a non-empty string id"),
        (raw(json!([start, {"id": "s"}]), json!([])), "Duplicate node id 's'"),
        (raw(json!([]), json!([{"source": "a"}])), "Edge at index 0 must have a non-empty string id"),
        (raw(json!([]), json!([{"id": "e"}, {"id": "e"}])), "Duplicate edge id 'e'"),
        (raw(json!([start, {"id": "t", "type": "start"}]), json!([])), "Only one start node is allowed"),
        // A draft: nothing behind this is looked at.
        (raw(json!([start, {"id": "x", "type": "odd"}]), json!([{"id": "e", "source": "z"}])), ""),
        (raw(json!([]), json!([])), ""),
        (raw(json!([a, {"id": "x", "type": "odd"}]), json!([])), "Node 'x' has unknown type 'odd'"),
        (raw(json!([a, {"id": "x"}]), json!([])), "Node 'x' has unknown type ''"),
        (one(json!({})), "Node 'a': type must be exact, contextual, silence or dtmf"),
        (one(json!({"type": "exact", "message": " "})), "Node 'a': message is required"),
        (one(json!({"type": "contextual"})), "Node 'a': message is required"),
        (
            one(json!({"type": "contextual", "speaker": "user", "message": "m"})),
            "Node 'a': contextual is only allowed for speaker agent",
        ),
        (one(json!({"type": "silence"})), "Node 'a': duration_ms must be a number between 0 and 86400000"),
        (
            one(json!({"type": "silence", "duration_ms": 86_400_001})),
            "Node 'a': duration_ms must be a number between 0 and 86400000",
        ),
        (
            one(json!({"type": "silence", "duration_ms": "5"})),
            "Node 'a': duration_ms must be a number between 0 and 86400000",
        ),
        (one(json!({"type": "silence", "duration_ms": 0})), ""),
        (one(json!({"type": "dtmf", "digits": "1x"})), "Node 'a': digits may hold only 0-9, *, #, A-D"),
        (one(json!({"type": "dtmf", "digits": " 1*#d "})), ""),
        (one(json!({"type": "exact", "message": "m", "speaker": "bot"})), "Node 'a': speaker must be agent or user"),
        (one(json!({"type": "exact", "message": "m", "speaker": null})), ""),
    ] {
        check(&definition, expect);
    }
}

#[test]
fn the_first_broken_rule_of_options_is_told() {
    let branches =
        |all: Value| graph(&[json!({"id": "o", "type": "options", "data": {"branch_options": all}})], &[("s", "o")]);
    for (definition, expect) in [
        (
            graph(
                &[json!({"id": "o", "type": "options", "data": {"speaker": "agent", "branch_options": []}})],
                &[("s", "o")],
            ),
            "Node 'o': options nodes are user only",
        ),
        (branches(json!([{"id": "b", "type": "exact", "message": "m"}])), "Node 'o' needs at least two branch options"),
        (branches(json!([{"id": "b"}, {"id": "b"}])), "Node 'o': branch ids must be unique and not empty"),
        (branches(json!([{"id": "b"}, {}])), "Node 'o': branch ids must be unique and not empty"),
        (branches(json!([{"id": "b", "type": "exact"}, {"id": "c"}])), "Node 'o': branch 'b': message is required"),
        (
            branches(
                json!([{"id": "b", "type": "dtmf", "digits": "1"}, {"id": "c", "type": "contextual", "message": "m"}]),
            ),
            "Node 'o': branch 'c': contextual is only allowed for speaker agent",
        ),
    ] {
        check(&definition, expect);
    }
}

#[test]
fn the_first_broken_rule_of_edges_is_told() {
    let a = says("a", "agent");
    let only = std::slice::from_ref(&a);
    for (definition, expect) in [
        (graph(only, &[("s", "a"), ("a", "z")]), "Edge 'a-z' references unknown node 'z'"),
        (graph(only, &[("y", "z")]), "Edge 'y-z' references unknown node 'y'"),
        (
            graph(
                &[
                    json!({"id": "o", "type": "options", "data": {"branch_options": [
                        {"id": "b", "type": "dtmf", "digits": "1"}, {"id": "c", "type": "dtmf", "digits": "2"}]}}),
                    a.clone(),
                ],
                &[("s", "o"), ("o", "a")],
            ),
            "Edge 'o-a' must set sourceHandle to a branch id of node 'o'",
        ),
        (
            graph(&[a.clone(), says("b", "user")], &[("s", "a"), ("a", "b"), ("b", "a")]),
            "Graph has a cycle through node 'a'",
        ),
        (graph(only, &[("s", "a"), ("a", "a")]), "Graph has a cycle through node 'a'"),
        (graph(&[a.clone(), says("b", "user")], &[("a", "b"), ("b", "a")]), "Graph has a cycle through node 'a'"),
        (graph(only, &[]), "No paths from Start"),
        (raw(json!([a]), json!([])), "No paths from Start"),
        (graph(&[a.clone(), says("b", "user")], &[("s", "a")]), "Node 'b' is not connected to Start"),
        (graph(only, &[("s", "a")]), ""),
    ] {
        check(&definition, expect);
    }
}

fn walk_paths(definition: &Definition) -> Vec<Vec<String>> {
    let (paths, cut) = Graph::parse(definition).expect("a graph").paths();
    assert!(!cut);
    paths.into_iter().map(|path| path.into_iter().map(|stop| stop.id).collect()).collect()
}

#[test]
fn paths_are_depth_first_by_edges_and_branches() {
    let menu = definition(json!({
        "nodes": [
            {"id": "s", "type": "start"}, says("hello", "agent"), says("x", "agent"), says("y", "user"), says("z", "agent"),
            {"id": "o", "type": "options", "data": {"branch_options": [
                {"id": "b1", "type": "dtmf", "digits": "1"}, {"id": "b2", "type": "exact", "message": "Billing"},
                {"id": "b3", "type": "silence", "duration_ms": 900.4}]}},
        ],
        "edges": [
            edge("s", "hello"), edge("hello", "o"),
            {"id": "1", "source": "o", "target": "z", "sourceHandle": "b3"},
            {"id": "2", "source": "o", "target": "y", "sourceHandle": "b1"},
            {"id": "3", "source": "o", "target": "x", "sourceHandle": "b1"},
            edge("y", "z"),
        ],
    }));
    let expect = [
        vec!["hello", "o:b1", "y", "z"],
        vec!["hello", "o:b1", "x"],
        vec!["hello", "o:b2"],
        vec!["hello", "o:b3", "z"],
    ];
    assert_eq!(walk_paths(&menu), expect);
    let (paths, _) = Graph::parse(&menu).expect("a graph").paths();
    let acts: Vec<(Role, &Act)> = paths[3].iter().map(|stop| (stop.content.speaker, &stop.content.act)).collect();
    let [hello, end] = ["hello", "z"].map(|id| Act::Exact(format!("This is {id}.")));
    assert_eq!(acts, [(Role::Agent, &hello), (Role::User, &Act::SilenceMs(900)), (Role::Agent, &end)]);
}

/// Returns `depth` nodes in a row, each of which two nodes follow that meet again: 2^depth paths.
fn ladder(depth: usize) -> Definition {
    let mut nodes = vec![json!({"id": "s", "type": "start"}), says("n0", "agent")];
    let mut edges = vec![edge("s", "n0")];
    for at in 0..depth {
        let (from, to) = (format!("n{at}"), format!("n{}", at + 1));
        nodes.push(says(&to, "agent"));
        for side in ["l", "r"] {
            let between = format!("{side}{at}");
            nodes.push(says(&between, "user"));
            edges.extend([edge(&from, &between), edge(&between, &to)]);
        }
    }
    definition(json!({"nodes": nodes, "edges": edges}))
}

#[test]
fn many_paths_are_cut_and_large_graphs_are_refused() {
    assert_eq!(walk_paths(&ladder(7)).len(), 128);
    for depth in [8, 600] {
        let (paths, cut) = Graph::parse(&ladder(depth)).expect("a graph").paths();
        assert_eq!((paths.len(), cut), (MAX_PATHS, true));
        assert_eq!(paths[0].len(), 2 * depth + 1);
        let first: Vec<&str> = paths[1][2 * depth - 2..].iter().map(|stop| stop.id.as_str()).collect();
        assert_eq!(first, [format!("n{}", depth - 1), format!("r{}", depth - 1), format!("n{depth}")]);
    }
    assert_eq!(refusal(&ladder(700)), "definition has 2102 nodes, the limit is 2000");
    let long = single("a", json!({"type": "exact", "message": "x".repeat((512 << 10) + 1)}));
    assert_eq!(refusal(&graph(&[long], &[("s", "a")])), "definition has 524289 bytes of messages, the limit is 524288");
    // No depth is a danger.
    let chain: Vec<Value> = (0..1999).map(|n| says(&format!("c{n}"), "user")).collect();
    let edges: Vec<Value> = (1..1999).map(|n| edge(&format!("c{}", n - 1), &format!("c{n}"))).collect();
    let nodes = [vec![json!({"id": "s", "type": "start"})], chain].concat();
    let edges = [vec![edge("s", "c0")], edges].concat();
    assert_eq!(walk_paths(&definition(json!({"nodes": nodes, "edges": edges})))[0].len(), 1999);
}

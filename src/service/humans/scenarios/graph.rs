//! The graph of a scenario: its rules, and its paths from the start to each leaf. Pure. Graphs may come from anywhere:
//! nothing here recurses, and the number of nodes, edges and paths is limited.

use std::collections::{HashMap, HashSet};

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::digital_human::Role;
use ringer_model::scenario::Definition;
use serde_json::Value;

/// Paths that are used; further ones are cut off.
pub(crate) const MAX_PATHS: usize = 200;
/// Nodes of one graph: with 200 paths through all of them still less than half a million steps.
const MAX_NODES: usize = 2000;
/// Edges of one graph.
const MAX_EDGES: usize = 10_000;
/// Bytes of all messages of one graph: every path holds its own copy.
const MAX_TEXT_BYTES: usize = 512 << 10;
/// Branches of one node.
const MAX_BRANCHES: usize = 200;
/// Longest silence: one day.
const MAX_SILENCE_MS: f64 = 86_400_000.0;

/// Action of one side at a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// Says exactly these words.
    Exact(String),
    /// Says something of this meaning.
    Contextual(String),
    /// Says nothing for so long.
    SilenceMs(i64),
    /// Presses these digits (DTMF).
    Dtmf(String),
}

/// Action at a node, with the side that takes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Content {
    /// Side that takes the action.
    pub speaker: Role,
    /// Action that it takes.
    pub act: Act,
}

/// One node on a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stop {
    /// Id of the node; `node:branch` at a node with options.
    pub id: String,
    /// Action that is taken at the node.
    pub content: Content,
}

/// Nodes on the way from the start to a leaf, in order.
pub(crate) type Path = Vec<Stop>;

struct Node {
    id: String,
    /// None at the start, one at a single node, one for each branch at a node with options.
    contents: Vec<Content>,
    /// Ids of the branches; empty unless the node has options.
    branches: Vec<String>,
    /// Ways from the node to the next ones.
    ways: Vec<Way>,
}

/// A way out of a node: which of its contents, and the next node, unless the path ends.
#[derive(Clone, Copy)]
struct Way {
    branch: usize,
    to: Option<usize>,
}

/// A graph that keeps all rules.
pub(crate) struct Graph {
    nodes: Vec<Node>,
    start: Option<usize>,
}

impl Graph {
    /// Checks a definition; a draft (without content) is a graph without paths.
    ///
    /// # Errors
    /// The text of the first rule that is broken.
    pub(crate) fn parse(definition: &Definition) -> Result<Graph> {
        let Definition { nodes, edges, .. } = definition;
        at_most(nodes.len(), MAX_NODES, "nodes")?;
        at_most(edges.len(), MAX_EDGES, "edges")?;
        let ids = ids(nodes, "Node", "node")?;
        let edge_ids = self::ids(edges, "Edge", "edge")?;
        if nodes.iter().filter(|node| kind(node) == "start").count() > 1 {
            return refuse("Only one start node is allowed".into());
        }
        if !nodes.iter().any(|node| matches!(kind(node).as_str(), "single" | "options")) {
            return Ok(Graph { nodes: Vec::new(), start: None });
        }
        let start = nodes.iter().position(|node| kind(node) == "start");
        let mut graph = Graph { nodes: read_nodes(nodes, &ids)?, start };
        at_most(graph.text_bytes(), MAX_TEXT_BYTES, "bytes of messages")?;
        let ends = ends(edges, &edge_ids, &ids)?;
        graph.read_ways(edges, &edge_ids, &ends)?;
        graph.check_cycles()?;
        graph.check_reach()?;
        Ok(graph)
    }

    /// Paths in depth-first order, edges and branches as they stand; true when there are more than [`MAX_PATHS`].
    pub(crate) fn paths(&self) -> (Vec<Path>, bool) {
        let mut paths = Vec::new();
        let Some(start) = self.start else { return (paths, false) };
        // Each frame: a node and the number of its ways that were taken already.
        let mut trail = vec![(start, 0)];
        while let Some((node, taken)) = trail.last_mut() {
            let Some(way) = self.nodes[*node].ways.get(*taken).copied() else {
                trail.pop();
                continue;
            };
            *taken += 1;
            match way.to {
                Some(next) => trail.push((next, 0)),
                None if paths.len() == MAX_PATHS => return (paths, true),
                None => paths.push(trail.iter().filter_map(|(node, taken)| self.stop(*node, taken - 1)).collect()),
            }
        }
        (paths, false)
    }

    /// Returns everything that is done anywhere, with the id of its node, in order of the nodes.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&str, &Content)> {
        self.nodes.iter().flat_map(|node| node.contents.iter().map(|content| (node.id.as_str(), content)))
    }

    /// Pairs of nodes at which the agent speaks twice in a row.
    pub(crate) fn agent_after_agent(&self) -> Vec<(&str, &str)> {
        let is_agent = |node: &Node| node.contents.first().is_some_and(|content| content.speaker == Role::Agent);
        let mut pairs = Vec::new();
        for node in self.nodes.iter().filter(|node| is_agent(node)) {
            let next = node.ways.iter().filter_map(|way| way.to.map(|to| &self.nodes[to]));
            pairs.extend(next.filter(|next| is_agent(next)).map(|next| (node.id.as_str(), next.id.as_str())));
        }
        pairs
    }

    fn text_bytes(&self) -> usize {
        let bytes = |content: &Content| match &content.act {
            Act::Exact(text) | Act::Contextual(text) | Act::Dtmf(text) => text.len(),
            Act::SilenceMs(_) => 0,
        };
        self.contents().map(|(_, content)| bytes(content)).sum()
    }

    fn stop(&self, node: usize, way: usize) -> Option<Stop> {
        let node = &self.nodes[node];
        let branch = node.ways[way].branch;
        let content = node.contents.get(branch)?.clone();
        let id = node.branches.get(branch).map_or_else(|| node.id.clone(), |branch| format!("{}:{branch}", node.id));
        Some(Stop { id, content })
    }

    /// Edges become ways: in their order at a node, by branch at a node with options. A branch without an edge ends its
    /// path.
    fn read_ways(&mut self, edges: &[Object], edge_ids: &[String], ends: &[(usize, usize)]) -> Result<()> {
        let mut out: Vec<Vec<Way>> = self.nodes.iter().map(|_| Vec::new()).collect();
        for ((edge, id), (source, target)) in edges.iter().zip(edge_ids).zip(ends) {
            let node = &self.nodes[*source];
            let handle = edge.get("sourceHandle").and_then(Value::as_str);
            let branch = node.branches.iter().position(|branch| Some(branch.as_str()) == handle);
            if branch.is_none() && !node.branches.is_empty() {
                return refuse(format!("Edge '{id}' must set sourceHandle to a branch id of node '{}'", node.id));
            }
            out[*source].push(Way { branch: branch.unwrap_or(0), to: Some(*target) });
        }
        for (node, mut ways) in self.nodes.iter_mut().zip(out) {
            for branch in 0..node.branches.len().max(1) {
                if !ways.iter().any(|way| way.branch == branch) {
                    ways.push(Way { branch, to: None });
                }
            }
            // Stable: edges of one branch keep their order.
            ways.sort_by_key(|way| way.branch);
            node.ways = ways;
        }
        Ok(())
    }

    fn check_cycles(&self) -> Result<()> {
        let mut on_trail = vec![false; self.nodes.len()];
        let mut done = vec![false; self.nodes.len()];
        for root in self.start.into_iter().chain(0..self.nodes.len()) {
            if done[root] {
                continue;
            }
            on_trail[root] = true;
            let mut trail = vec![(root, 0)];
            while let Some((node, taken)) = trail.last_mut() {
                let (at, way) = (*node, self.nodes[*node].ways.get(*taken));
                *taken += 1;
                match way.map(|way| way.to) {
                    Some(Some(next)) if on_trail[next] => {
                        return refuse(format!("Graph has a cycle through node '{}'", self.nodes[next].id));
                    }
                    Some(Some(next)) if !done[next] => {
                        on_trail[next] = true;
                        trail.push((next, 0));
                    }
                    Some(_) => {}
                    None => {
                        (on_trail[at], done[at]) = (false, true);
                        trail.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn check_reach(&self) -> Result<()> {
        let mut reached = vec![false; self.nodes.len()];
        let mut open: Vec<usize> = self.start.into_iter().collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                open.extend(self.nodes[node].ways.iter().filter_map(|way| way.to));
            }
        }
        let content = |at: &usize| !self.nodes[*at].contents.is_empty();
        if !(0..self.nodes.len()).filter(content).any(|at| reached[at]) {
            return refuse("No paths from Start".into());
        }
        match (0..self.nodes.len()).filter(content).find(|at| !reached[*at]) {
            Some(at) => refuse(format!("Node '{}' is not connected to Start", self.nodes[at].id)),
            None => Ok(()),
        }
    }
}

fn refuse<T>(text: String) -> Result<T> {
    Err(Error::Refused(text))
}

fn at_most(count: usize, most: usize, what: &str) -> Result<()> {
    if count > most { refuse(format!("definition has {count} {what}, the limit is {most}")) } else { Ok(()) }
}

/// Returns the type of a node; the JSON text of what is no string.
fn kind(node: &Object) -> String {
    match node.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn ids(all: &[Object], what: &str, name: &str) -> Result<Vec<String>> {
    let mut known = HashSet::new();
    let mut ids = Vec::with_capacity(all.len());
    for (index, one) in all.iter().enumerate() {
        let Some(id) = one.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
            return refuse(format!("{what} at index {index} must have a non-empty string id"));
        };
        if !known.insert(id) {
            return refuse(format!("Duplicate {name} id '{id}'"));
        }
        ids.push(id.to_owned());
    }
    Ok(ids)
}

fn read_nodes(nodes: &[Object], ids: &[String]) -> Result<Vec<Node>> {
    let kinds: Vec<String> = nodes.iter().map(kind).collect();
    if let Some((id, kind)) =
        ids.iter().zip(&kinds).find(|(_, kind)| !matches!(kind.as_str(), "start" | "single" | "options"))
    {
        return refuse(format!("Node '{id}' has unknown type '{kind}'"));
    }
    let nothing = Object::new();
    let mut read: Vec<Node> = ids
        .iter()
        .map(|id| Node { id: id.clone(), contents: Vec::new(), branches: Vec::new(), ways: Vec::new() })
        .collect();
    for wanted in ["single", "options"] {
        for (at, node) in nodes.iter().enumerate().filter(|(at, _)| kinds[*at] == wanted) {
            let whose = format!("Node '{}'", ids[at]);
            let data = node.get("data").and_then(Value::as_object).unwrap_or(&nothing);
            if wanted == "single" {
                read[at].contents = vec![content(&whose, data, Role::Agent)?];
            } else {
                (read[at].branches, read[at].contents) = options(&whose, data)?;
            }
        }
    }
    Ok(read)
}

/// Reads the action in `data`; `speaker` takes it if it names nobody. `whose` begins the text of a refusal.
fn content(whose: &str, data: &Object, speaker: Role) -> Result<Content> {
    let wrong = |text: &str| refuse(format!("{whose}: {text}"));
    let kind = data.get("type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(kind, "exact" | "contextual" | "silence" | "dtmf") {
        return wrong("type must be exact, contextual, silence or dtmf");
    }
    let message = data.get("message").and_then(Value::as_str).unwrap_or_default();
    if matches!(kind, "exact" | "contextual") && message.trim().is_empty() {
        return wrong("message is required");
    }
    let named = data.get("speaker").filter(|speaker| !speaker.is_null());
    let who = match named {
        None => Some(speaker),
        Some(name) if name == "agent" => Some(Role::Agent),
        Some(name) if name == "user" => Some(Role::User),
        Some(_) => None,
    };
    if kind == "contextual" && who != Some(Role::Agent) {
        return wrong("contextual is only allowed for speaker agent");
    }
    let act = match kind {
        "exact" => Act::Exact(message.to_owned()),
        "contextual" => Act::Contextual(message.to_owned()),
        "silence" => match data.get("duration_ms").and_then(Value::as_f64) {
            Some(ms) if (0.0..=MAX_SILENCE_MS).contains(&ms) => Act::SilenceMs(ms.round() as i64),
            _ => return wrong("duration_ms must be a number between 0 and 86400000"),
        },
        _ => {
            let digits = data.get("digits").and_then(Value::as_str).unwrap_or_default().trim().to_ascii_uppercase();
            let is_digit = |c: char| c.is_ascii_digit() || "*#ABCD".contains(c);
            if digits.is_empty() || !digits.chars().all(is_digit) {
                return wrong("digits may hold only 0-9, *, #, A-D");
            }
            Act::Dtmf(digits)
        }
    };
    match who {
        Some(speaker) => Ok(Content { speaker, act }),
        None => wrong("speaker must be agent or user"),
    }
}

fn options(whose: &str, data: &Object) -> Result<(Vec<String>, Vec<Content>)> {
    if data.get("speaker").is_some_and(|speaker| !speaker.is_null() && speaker != "user") {
        return refuse(format!("{whose}: options nodes are user only"));
    }
    let branches = data.get("branch_options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if branches.len() < 2 {
        return refuse(format!("{whose} needs at least two branch options"));
    }
    if branches.len() > MAX_BRANCHES {
        return refuse(format!("{whose} has {} branch options, the limit is {MAX_BRANCHES}", branches.len()));
    }
    let mut ids: Vec<String> = Vec::with_capacity(branches.len());
    for branch in branches {
        let id = branch.get("id").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() || ids.iter().any(|known| known == id) {
            return refuse(format!("{whose}: branch ids must be unique and not empty"));
        }
        ids.push(id.to_owned());
    }
    let mut contents = Vec::with_capacity(branches.len());
    for (branch, id) in branches.iter().zip(&ids) {
        let mut data = branch.as_object().cloned().unwrap_or_default();
        // A branch is what the caller does, whoever it may name.
        data.remove("speaker");
        contents.push(content(&format!("{whose}: branch '{id}'"), &data, Role::User)?);
    }
    Ok((ids, contents))
}

/// Returns the source and target of each edge.
fn ends(edges: &[Object], edge_ids: &[String], ids: &[String]) -> Result<Vec<(usize, usize)>> {
    let places: HashMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    let end = |edge: &Object, id: &str, key: &str| {
        let name = edge.get(key).and_then(Value::as_str).unwrap_or_default();
        let known = places.get(name).copied();
        known.ok_or_else(|| Error::Refused(format!("Edge '{id}' references unknown node '{name}'")))
    };
    let pairs = edges.iter().zip(edge_ids);
    pairs.map(|(edge, id)| Ok((end(edge, id, "source")?, end(edge, id, "target")?))).collect()
}

#[cfg(test)]
mod tests;

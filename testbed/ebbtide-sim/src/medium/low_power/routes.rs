//! Routes as RPL converges to them (RFC 6550, storing mode): a tree of least ETX to the root; up
//! to the first common ancestor, then down.

use super::MeshGraph;
use crate::random::{Streams, uniform};

/// The next hop from every node to every node, and the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    nodes: u32,
    next: Vec<u32>,
    parents: Vec<Option<u32>>,
    /// Whether the root has a route to each node.
    in_table: Vec<bool>,
}

impl Routes {
    /// The tree of least expected transmission count, the sum over hops of one over the product of
    /// the two directions' receptions (RFC 6551 section 4.3.2). Equal ones are decided by lot, as
    /// the order of RPL's messages decides them.
    pub fn new(topology: &MeshGraph, streams: &Streams) -> Self {
        let nodes = topology.nodes();
        let mut lots = streams.stream("routes");
        let lots: Vec<u64> = (0..nodes).map(|_| uniform(&mut lots, 0, u64::MAX)).collect();
        let count = nodes as usize;
        let mut parents: Vec<Option<u32>> = vec![None; count];
        let mut cost = vec![f64::INFINITY; count];
        let mut is_settled = vec![false; count];
        cost[topology.root as usize] = 0.0;
        // Dijkstra over a dense graph of at most a few hundred nodes.
        while let Some(node) = (0..count)
            .filter(|node| !is_settled[*node] && cost[*node].is_finite())
            .min_by(|a, b| cost[*a].total_cmp(&cost[*b]).then(lots[*a].cmp(&lots[*b])))
        {
            is_settled[node] = true;
            let here = node as u32;
            for other in 0..nodes {
                let both = topology.quality(here, other) * topology.quality(other, here);
                let place = other as usize;
                if both <= 0.0 || is_settled[place] {
                    continue;
                }
                let through = cost[node] + 1.0 / both;
                if through < cost[place] - 1e-9 {
                    cost[place] = through;
                    parents[place] = Some(here);
                } else if (through - cost[place]).abs() <= 1e-9
                    && parents[place].is_some_and(|parent| lots[node] < lots[parent as usize])
                {
                    parents[place] = Some(here);
                }
            }
        }
        Self { nodes, next: next_hops(&parents), parents, in_table: vec![true; count] }
    }

    /// The same tree, where the root's table has room for `most` motes. By lot, as the order in which
    /// their announcements (DAO, RFC 6550 section 6.4) arrive decides it.
    pub fn limited(mut self, most: Option<u32>, root: u32, streams: &Streams) -> Self {
        let Some(most) = most else { return self };
        let mut motes: Vec<u32> = (0..self.nodes).filter(|node| *node != root).collect();
        let mut lots = streams.stream("routes/table");
        for last in (1..motes.len()).rev() {
            motes.swap(last, uniform(&mut lots, 0, last as u64) as usize);
        }
        for mote in motes.into_iter().skip(most as usize) {
            self.in_table[mote as usize] = false;
        }
        self
    }

    /// Whether the root has a route to a node.
    pub fn has(&self, node: u32) -> bool {
        self.in_table[node as usize]
    }

    /// Where a node sends a datagram for another one.
    pub fn next_hop(&self, at: u32, to: u32) -> u32 {
        self.next[at as usize * self.nodes as usize + to as usize]
    }

    /// A node's parent; none for the root.
    pub fn parent(&self, node: u32) -> Option<u32> {
        self.parents[node as usize]
    }

    /// Hops from one node to another.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let (mut at, mut hops) = (from, 0);
        while at != to && hops < self.nodes {
            at = self.next_hop(at, to);
            hops += 1;
        }
        hops
    }
}

fn next_hops(parents: &[Option<u32>]) -> Vec<u32> {
    let count = parents.len();
    // Upwards unless the destination is below.
    let mut next: Vec<u32> = (0..count * count)
        .map(|pair| parents[pair / count].unwrap_or((pair / count) as u32))
        .collect();
    for to in 0..count {
        next[to * count + to] = to as u32;
        let mut child = to;
        while let Some(parent) = parents[child] {
            next[parent as usize * count + to] = child as u32;
            child = parent as usize;
        }
    }
    next
}

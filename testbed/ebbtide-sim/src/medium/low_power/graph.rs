//! From places to who hears whom.

use super::Mesh;
use crate::keys::{Check, Fault};
use crate::medium::{Air, AirPath, Fading};
use crate::net::{Loss, LossModel};
use crate::random::{Probability, Streams};

/// The nodes of a mesh and what links them.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshGraph {
    /// Where they are, m.
    pub places: Vec<[f64; 2]>,
    /// The root of the routes.
    pub root: u32,
    /// The share of frames received from each by each when nothing else spoils them, the sender's
    /// row first.
    pub quality: Vec<f64>,
}

impl MeshGraph {
    /// The graph of a mesh. `average_loss` is lost on every path on top.
    pub fn new(mesh: &Mesh, average_loss: f64) -> Self {
        let places = mesh.topology.places();
        let mut quality = Vec::with_capacity(places.len() * places.len());
        for (from, a) in places.iter().enumerate() {
            quality.extend(places.iter().enumerate().map(|(to, b)| match from == to {
                true => 0.0,
                false => mesh.radio.reception(distance(*a, *b)) * (1.0 - average_loss),
            }));
        }
        Self { places, root: mesh.topology.root(), quality }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.places.len() as u32
    }

    /// The share of frames received on the way from one node to another.
    pub fn quality(&self, from: u32, to: u32) -> f64 {
        self.quality[from as usize * self.places.len() + to as usize]
    }

    /// Checks that every node can be reached.
    ///
    /// # Errors
    ///
    /// The key and a message that names a node that cannot be, and why.
    pub(crate) fn check(&self, mesh: &Mesh) -> Check {
        let nodes = self.nodes();
        let mut reached = vec![false; nodes as usize];
        let mut next = vec![self.root];
        reached[self.root as usize] = true;
        while let Some(node) = next.pop() {
            for other in 0..nodes {
                let both = self.quality(node, other) * self.quality(other, node);
                if both > 0.0 && !reached[other as usize] {
                    reached[other as usize] = true;
                    next.push(other);
                }
            }
        }
        let Some(lost) = reached.iter().position(|reached| !reached) else { return Ok(()) };
        let place = self.places[lost];
        let reach = mesh.radio.reach;
        let nearest = self.places.iter().enumerate().filter(|(other, _)| *other != lost);
        let nearest = nearest.map(|(other, at)| (distance(place, *at), other));
        let (far, other) = nearest.fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a });
        let [x, y] = place;
        let message = if far >= reach {
            format!(
                "node {lost} at ({x}, {y}) m is out of everyone's range: the nearest node, {other}, is \
                 {far:.1} m away and network.mesh.radio.reach is {reach} m"
            )
        } else {
            format!(
                "node {lost} at ({x}, {y}) m has no way to the root, node {}: the network falls apart \
                 where nodes are {reach} m (network.mesh.radio.reach) or more from each other",
                self.root
            )
        };
        Err(Fault::new("network.mesh.topology", message))
    }

    /// The air between the nodes. Every path that loses frames has streams of its own.
    pub(crate) fn air(&self, mesh: &Mesh, loss: LossModel, streams: &Streams) -> Air {
        let nodes = self.places.len();
        let mut paths = Vec::with_capacity(nodes * nodes);
        let mut fading = Vec::with_capacity(nodes * nodes);
        for (from, a) in self.places.iter().enumerate() {
            for (to, b) in self.places.iter().enumerate() {
                let far = distance(*a, *b);
                let audible = from != to && far <= mesh.radio.interference;
                paths.push(AirPath { audible, distance_squared: far * far });
                let reception = mesh.radio.reception(far);
                let is_lossless = reception >= 1.0 && loss == LossModel::None;
                fading.push((audible && !is_lossless).then(|| {
                    let stream = |what: &str| streams.stream(&format!("path/{from}-{to}/{what}"));
                    Box::new(Fading {
                        reception: Probability::new(reception),
                        rng: stream("reception"),
                        bursts: Loss::new(loss, stream("loss"), stream("states")),
                    })
                }));
            }
        }
        Air::new(nodes, paths, fading, mesh.radio.capture)
    }
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    let (x, y) = (a[0] - b[0], a[1] - b[1]);
    (x * x + y * y).sqrt()
}

//! A low-power network as a picture: numbered nodes at their places, lines to their parents.

use super::{Anchor, Descriptions, Svg};
use crate::text::{fixed, percent};
use ebbtide_sim::result::MeshNode;

/// Loss from which on a node has the next colour.
const STEPS: [f64; 4] = [0.01, 0.05, 0.2, 0.5];
/// Room for the loss beside a node at the right edge.
const MARGIN: f64 = 38.0;
/// The radius of a node with an empty queue: room for its number.
const SMALLEST: f64 = 10.0;

/// The class of colour of a loss, 0 to 4.
pub(crate) fn class(loss: f64) -> usize {
    STEPS.iter().take_while(|step| loss >= **step).count()
}

/// The network, `width` wide.
pub(crate) fn draw(nodes: &[MeshNode], width: f64, words: &Descriptions) -> String {
    let range = |at: fn(&MeshNode) -> f64| {
        let low = nodes.iter().map(at).fold(f64::INFINITY, f64::min);
        (low, nodes.iter().map(at).fold(f64::NEG_INFINITY, f64::max))
    };
    let ((left, right), (top, bottom)) = (range(|node| node.x), range(|node| node.y));
    let scale = (width - 2.0 * MARGIN) / (right - left).max(bottom - top).max(1e-9);
    let height = (bottom - top) * scale + 2.0 * MARGIN;
    let place =
        |node: &MeshNode| ((node.x - left) * scale + MARGIN, (node.y - top) * scale + MARGIN);
    // The area says how full the queue was.
    let radius =
        |node: &MeshNode| SMALLEST + 4.0 * (node.peak_queue.max(0.0) / 8.0).sqrt().min(1.5);
    let mut canvas = Svg::new(width, height);
    for node in nodes {
        if let Some(parent) = nodes.get(node.parent as usize) {
            canvas.line(place(node), place(parent), "axis");
        }
    }
    for (number, node) in nodes.iter().enumerate() {
        let root = if node.parent as usize == number { ", the root" } else { "" };
        let tip = format!(
            "node {number}{root}\nloss {}\nqueue at most {} frames\nradio {} mW",
            percent(node.loss, 1),
            fixed(node.peak_queue, 1),
            fixed(node.power_mw, 2),
        );
        let at = place(node);
        let class = class(node.loss);
        let radius = radius(node);
        canvas.dot(at, radius, &format!("r{class}"), &tip);
        if !root.is_empty() {
            canvas.rect(
                (at.0 - radius - 3.0, at.1 - radius - 3.0),
                (at.0 + radius + 3.0, at.1 + radius + 3.0),
                "whisker",
                "",
            );
        }
    }
    // Last, so that no dot covers them; the loss beside the lines that go down and to the right.
    for (number, node) in nodes.iter().enumerate() {
        let (x, y) = place(node);
        let inside = format!("in{}", class(node.loss));
        canvas.text((x, y + 4.0), Anchor::Middle, &inside, &number.to_string());
        let label = percent(node.loss, 0);
        canvas.text((x + 4.0, y + radius(node) + 11.0), Anchor::Start, "tick haloed", &label);
    }
    canvas.finish(words)
}

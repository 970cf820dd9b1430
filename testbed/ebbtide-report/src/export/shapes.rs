//! A drawing of the page taken apart: shapes with their styles resolved.
//!
//! The page is read back, and not drawn a second time: its style sheet alone says how a class looks,
//! on a light and on a dark screen, so that paper shows what the page shows.

use super::style::{Style, StyleSheet};

/// A drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) shapes: Vec<Shape>,
}

/// One shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) kind: ShapeKind,
    pub(super) style: Style,
}

/// The geometry or the text of a shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShapeKind {
    /// Stretches of straight lines, and whether each is closed.
    Path(Vec<(Vec<(f64, f64)>, bool)>),
    /// Centre and radius.
    Circle((f64, f64), f64),
    /// A text at a place.
    Text((f64, f64), String),
}

impl Drawing {
    /// Parses a drawing from the text that follows `<svg viewBox` in the page, without the closing
    /// tag.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let sheet = StyleSheet::page();
        let (head, body) = text.split_once('>')?;
        let head = format!("viewBox{head}");
        let mut drawing = Self {
            width: attribute(&head, "width")?.parse().ok()?,
            height: attribute(&head, "height")?.parse().ok()?,
            ..Self::default()
        };
        if !head.contains("role=\"img\"") {
            return None;
        }
        let mut parents = vec![Style::new()];
        let mut rest = body;
        while let Some((before, after)) = rest.split_once('<') {
            // Text content is read with its tag.
            let _ = before;
            let (tag, after) = after.split_once('>')?;
            rest = after;
            let name = tag.split([' ', '/']).next().unwrap_or_default();
            if tag.starts_with('/') {
                if tag == "/g" && parents.len() > 1 {
                    parents.pop();
                }
                continue;
            }
            let content = || unescape(after.split('<').next().unwrap_or_default());
            let class = attribute(tag, "class").unwrap_or_default();
            let parent = parents.last().cloned().unwrap_or_default();
            let style = sheet.style(name, class, &parent);
            let number = |name: &str| attribute(tag, name).and_then(|v| v.parse::<f64>().ok());
            let place = |x: &str, y: &str| Some((number(x)?, number(y)?));
            let kind = match name {
                "g" => {
                    parents.push(style);
                    continue;
                }
                "title" => {
                    drawing.title = content();
                    continue;
                }
                "desc" => {
                    drawing.description = content();
                    continue;
                }
                "path" => ShapeKind::Path(path(attribute(tag, "d")?)),
                "rect" => {
                    let ((x, y), (w, h)) = (place("x", "y")?, place("width", "height")?);
                    let corners = vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h)];
                    ShapeKind::Path(vec![(corners, true)])
                }
                "circle" => ShapeKind::Circle(place("cx", "cy")?, number("r")?),
                "text" => ShapeKind::Text(place("x", "y")?, content()),
                _ => continue,
            };
            drawing.shapes.push(Shape { kind, style });
        }
        Some(drawing)
    }
}

/// The value of an attribute in a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let wanted = format!(" {name}=\"");
    let start = tag.find(&wanted)? + wanted.len();
    let end = start + tag[start..].find('"')?;
    tag.get(start..end)
}

fn unescape(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The paths that drawings are made of: M, L, H, V, Z and the dots of `h0`.
fn path(d: &str) -> Vec<(Vec<(f64, f64)>, bool)> {
    let mut all: Vec<(Vec<(f64, f64)>, bool)> = Vec::new();
    let is_command = |c: char| c.is_ascii_alphabetic();
    let mut rest = d;
    while let Some(command) = rest.chars().next().filter(|c| is_command(*c)) {
        rest = &rest[1..];
        let end = rest.find(is_command).unwrap_or(rest.len());
        let numbers: Vec<f64> =
            rest[..end].split([' ', ',']).filter_map(|n| n.parse().ok()).collect();
        rest = &rest[end..];
        if command == 'M'
            && let [x, y] = numbers[..]
        {
            all.push((vec![(x, y)], false));
            continue;
        }
        let Some((points, is_closed)) = all.last_mut() else { continue };
        let (x, y) = points.last().copied().unwrap_or_default();
        match (command, numbers.as_slice()) {
            ('L', [x, y]) => points.push((*x, *y)),
            ('H', [x]) => points.push((*x, y)),
            ('V', [y]) => points.push((x, *y)),
            ('h', [by]) => points.push((x + by, y)),
            ('Z', _) => *is_closed = true,
            _ => {}
        }
    }
    all
}

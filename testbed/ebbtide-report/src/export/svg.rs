//! A drawing as SVG that stands alone: every style is an attribute.

use super::Provenance;
use super::shapes::{Drawing, ShapeKind};
use super::style::Style;
use crate::svg::px;
use crate::text::escape;

/// The properties that are written, where an element has them.
const SHAPES: [&str; 8] = [
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-dasharray",
    "stroke-linejoin",
    "stroke-linecap",
];
const TEXTS: [&str; 4] = ["fill", "font-size", "font-weight", "text-anchor"];

/// As wide as so many points.
pub(super) fn write(drawing: &Drawing, points: f64, from: &Provenance) -> String {
    let (w, h) = (drawing.width, drawing.height);
    let mut body = String::new();
    for shape in &drawing.shapes {
        match &shape.kind {
            ShapeKind::Path(parts) => {
                let mut d = String::new();
                for (points, is_closed) in parts {
                    let each: Vec<String> =
                        points.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
                    d.push_str(&format!("M{}", each.join("L")));
                    d.push_str(if *is_closed { "Z" } else { "" });
                }
                body.push_str(&format!("<path d=\"{d}\"{}/>\n", attributes(&shape.style, &SHAPES)));
            }
            ShapeKind::Circle((x, y), r) => body.push_str(&format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n",
                px(*x),
                px(*y),
                px(*r),
                attributes(&shape.style, &SHAPES)
            )),
            ShapeKind::Text((x, y), text) => body.push_str(&format!(
                "<text x=\"{}\" y=\"{}\"{}>{}</text>\n",
                px(*x),
                px(*y),
                attributes(&shape.style, &TEXTS),
                escape(text)
            )),
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}pt\" \
         height=\"{}pt\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>{}</title>\n\
         <desc>{}</desc>\n<metadata>Ebbtide {}, seed {}: {}</metadata>\n{body}</svg>\n",
        px(w),
        px(h),
        px(points),
        px(points * h / w),
        escape(&drawing.title),
        escape(&drawing.description),
        escape(&from.version),
        from.seed,
        escape(&from.command),
    )
}

fn attributes(style: &Style, names: &[&str]) -> String {
    let pairs = names.iter().filter_map(|name| Some((name, style.get(*name)?)));
    pairs.map(|(name, value)| format!(" {name}=\"{}\"", escape(value))).collect()
}

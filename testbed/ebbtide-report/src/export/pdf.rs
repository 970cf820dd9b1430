//! A drawing as PDF 1.4: vectors and text in fonts that are embedded, as publishers require. The same figure gives the
//! same bytes everywhere.

use super::Provenance;
use super::font::{FONTS, Font};
use super::shapes::{Drawing, Shape, ShapeKind};
use super::style::Style;

/// A page as large as the drawing, so many points wide.
pub(super) fn write(drawing: &Drawing, points: f64, from: &Provenance) -> Vec<u8> {
    let scale = points / drawing.width.max(1.0);
    let height = drawing.height * scale;
    let mut alphas: Vec<u8> = Vec::new();
    let mut content = format!("{0:.4} 0 0 {0:.4} 0 0 cm\n1 j\n", scale);
    for shape in &drawing.shapes {
        draw(&mut content, shape, drawing.height, &mut alphas);
    }
    let states: String = alphas
        .iter()
        .map(|alpha| {
            let share = f64::from(*alpha) / 100.0;
            format!("/A{alpha} << /ca {share:.2} /CA {share:.2} >> ")
        })
        .collect();
    // Texts are bytes of WinAnsiEncoding: each is a character below 256 here.
    let narrow = |text: &str| -> Vec<u8> {
        text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
    };
    let page = format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {points:.2} {height:.2}] /Contents 4 0 R \
         /Resources << /Font << /F 6 0 R /B 9 0 R >> /ExtGState << {states}>> >> >>"
    );
    let info = format!(
        "<< /Title {} /Subject {} /Keywords {} /Producer {} >>",
        text_string(&drawing.title),
        text_string(&from.command),
        text_string(&format!("seed {}", from.seed)),
        text_string(&format!("Ebbtide {}", from.version)),
    );
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        page.into_bytes(),
        stream("", &narrow(&content)),
        info.into_bytes(),
    ];
    for font in &FONTS {
        let number = objects.len() + 1;
        objects.push(font.object(number + 1).into_bytes());
        objects.push(font.descriptor(number + 2).into_bytes());
        objects.push(stream(&format!("/Length1 {} ", font.file.len()), font.file));
    }
    let mut out = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        places.push(out.len());
        out.extend(format!("{number} 0 obj\n").into_bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    let start = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for place in places {
        out.extend(format!("{place:010} 00000 n \n").into_bytes());
    }
    let size = objects.len() + 1;
    out.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{start}\n%%EOF\n")
            .into_bytes(),
    );
    out
}

/// A stream with these further entries of its dictionary.
fn stream(entries: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("<< {entries}/Length {} >>\nstream\n", bytes.len()).into_bytes();
    out.extend(bytes);
    out.extend(b"\nendstream");
    out
}

/// A text of the document's information, in UTF-16 (PDF 1.7, section 7.9.2.2).
fn text_string(text: &str) -> String {
    let units: String = text.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
    format!("<FEFF{units}>")
}

fn draw(content: &mut String, shape: &Shape, height: f64, alphas: &mut Vec<u8>) {
    let style = &shape.style;
    let up = |(x, y): (f64, f64)| format!("{x:.2} {:.2}", height - y);
    if let ShapeKind::Text(at, text) = &shape.kind {
        let size = number(style, "font-size").unwrap_or(12.0);
        let is_bold = number(style, "font-weight").is_some_and(|weight| weight >= 550.0);
        let text = encoded(text);
        let [regular, bold]: &[Font; 2] = &FONTS;
        let font = if is_bold { bold } else { regular };
        let back = match style.get("text-anchor").map(String::as_str) {
            Some("middle") => font.width(&text, size) / 2.0,
            Some("end") => font.width(&text, size),
            _ => 0.0,
        };
        let Some(color) = color(style, "fill") else { return };
        let font = if is_bold { "B" } else { "F" };
        let (place, text) = (up((at.0 - back, at.1)), escaped(&text));
        content.push_str(&format!(
            "q {color} rg BT /{font} {size:.2} Tf {place} Td ({text}) Tj ET Q\n"
        ));
        return;
    }
    // What a style does not say: filled in black, not outlined.
    let fill = if style.contains_key("fill") { color(style, "fill") } else { Some("0 0 0".into()) };
    let stroke = color(style, "stroke");
    if fill.is_none() && stroke.is_none() {
        return;
    }
    content.push_str("q ");
    let opacity = number(style, if fill.is_some() { "fill-opacity" } else { "stroke-opacity" });
    if let Some(share) = opacity {
        // Whole percents are as fine as an eye is.
        let alpha = (share * 100.0).clamp(0.0, 100.0) as u8;
        if !alphas.contains(&alpha) {
            alphas.push(alpha);
        }
        content.push_str(&format!("/A{alpha} gs "));
    }
    if let Some(color) = &fill {
        content.push_str(&format!("{color} rg "));
    }
    if let Some(color) = &stroke {
        let width = number(style, "stroke-width").unwrap_or(1.0);
        content.push_str(&format!("{color} RG {width:.2} w "));
        if style.get("stroke-linecap").is_some_and(|cap| cap == "round") {
            content.push_str("1 J ");
        }
        if let Some(dash) = style.get("stroke-dasharray").filter(|dash| *dash != "none") {
            content.push_str(&format!("[{dash}] 0 d "));
        }
    }
    match &shape.kind {
        ShapeKind::Path(parts) => {
            for (points, is_closed) in parts {
                for (index, at) in points.iter().enumerate() {
                    let operator = if index == 0 { "m" } else { "l" };
                    content.push_str(&format!("{} {operator} ", up(*at)));
                }
                content.push_str(if *is_closed { "h " } else { "" });
            }
        }
        ShapeKind::Circle((x, y), r) => circle(content, *x, height - y, *r),
        ShapeKind::Text(..) => {}
    }
    content.push_str(match (fill.is_some(), stroke.is_some()) {
        (true, true) => "B Q\n",
        (true, false) => "f Q\n",
        _ => "S Q\n",
    });
}

/// Four arcs of Bézier curves.
fn circle(content: &mut String, x: f64, y: f64, r: f64) {
    const K: f64 = 0.552_285;
    content.push_str(&format!("{:.2} {y:.2} m ", x + r));
    for (from, to) in [((1.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (-1.0, 0.0))]
        .into_iter()
        .chain([((-1.0, 0.0), (0.0, -1.0)), ((0.0, -1.0), (1.0, 0.0))])
    {
        let at = |along: f64, across: f64| {
            (x + r * (from.0 * along + to.0 * across), y + r * (from.1 * along + to.1 * across))
        };
        let (a, b, c) = (at(1.0, K), at(K, 1.0), at(0.0, 1.0));
        content.push_str(&format!(
            "{:.2} {:.2} {:.2} {:.2} {:.2} {:.2} c ",
            a.0, a.1, b.0, b.1, c.0, c.1
        ));
    }
    content.push_str("h ");
}

fn number(style: &Style, name: &str) -> Option<f64> {
    style.get(name)?.trim_end_matches("px").parse().ok()
}

/// A colour of the style sheet as PDF has it; `None` if there is none.
fn color(style: &Style, name: &str) -> Option<String> {
    let digits = style.get(name)?.strip_prefix('#')?;
    let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let share = |at: usize| Some(f64::from(part(at)?) / 255.0);
    Some(format!("{:.3} {:.3} {:.3}", share(0)?, share(2)?, share(4)?))
}

/// A text in WinAnsiEncoding.
fn encoded(text: &str) -> Vec<u8> {
    text.chars()
        .map(|c| match c {
            ' '..='~' => c as u8,
            '\u{2013}' => 0x96,
            '\u{2026}' => 0x85,
            '\u{2019}' => 0x92,
            '\u{2020}' => 0x86,
            '\u{2212}' => b'-',
            '\u{202f}' | '\u{a0}' => b' ',
            '\u{a1}'..='\u{ff}' => c as u8,
            _ => b'?',
        })
        .collect()
}

/// A string's bytes within parentheses, as characters of their number.
fn escaped(text: &[u8]) -> String {
    let mut out = String::new();
    for byte in text {
        if matches!(byte, b'(' | b')' | b'\\') {
            out.push('\\');
        }
        out.push(char::from(*byte));
    }
    out
}

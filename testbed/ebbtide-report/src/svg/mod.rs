//! Inline SVG: a few shapes, and a title and a description for those who cannot see them.

pub(super) mod axis;
pub(super) mod bars;
pub(super) mod boxplot;
pub(super) mod cdf;
pub(super) mod curve;
pub(super) mod dots;
pub(super) mod lines;
pub(super) mod timeseries;
pub(super) mod tree;

use super::text::escape;

/// Width of a panel among others, in pixels of the drawing.
pub(super) const PANEL: f64 = 400.0;

/// Width of a figure that has the page to itself.
pub(super) const WIDE: f64 = 960.0;

/// Where a text is held.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing being made.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let (start, end) = (point(from), point(to));
        self.body.push_str(&format!("<path class=\"{class}\" d=\"M{start}L{end}\"/>"));
    }

    /// Any path; `d` is made by this module's callers, `tip` may be empty.
    pub(super) fn path(&mut self, d: &str, class: &str, tip: &str) {
        let tip = tip_attribute(tip);
        self.body.push_str(&format!("<path class=\"{class}\"{tip} d=\"{d}\"/>"));
    }

    /// A rectangle from corner to corner; `tip` may be empty.
    pub(super) fn rect(&mut self, a: (f64, f64), b: (f64, f64), class: &str, tip: &str) {
        let (x, y) = (a.0.min(b.0), a.1.min(b.1));
        let (w, h) = (px((a.0 - b.0).abs()), px((a.1 - b.1).abs()));
        let (x, y, tip) = (px(x), px(y), tip_attribute(tip));
        self.body.push_str(&format!(
            "<rect class=\"{class}\"{tip} x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>"
        ));
    }

    /// A dot; `tip` may be empty.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, class: &str, tip: &str) {
        let (x, y, r, tip) = (px(at.0), px(at.1), px(radius), tip_attribute(tip));
        self.body
            .push_str(&format!("<circle class=\"{class}\"{tip} cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>"));
    }

    /// A text on one line, escaped here.
    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " mid",
            Anchor::End => " end",
        };
        let (x, y, text) = (px(at.0), px(at.1), escape(text));
        self.body.push_str(&format!(
            "<text class=\"{class}{anchor}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// Opens a group, for example to give all that follows a control's colour.
    pub(super) fn open(&mut self, class: &str, tip: &str) {
        let tip = tip_attribute(tip);
        self.body.push_str(&format!("<g class=\"{class}\"{tip}>"));
    }

    /// Closes the group.
    pub(super) fn close(&mut self) {
        self.body.push_str("</g>");
    }

    /// The drawing, with what it shows in words.
    pub(super) fn finish(self, words: &Descriptions) -> String {
        let Descriptions { id, title, desc } = words;
        let (w, h) = (px(self.width), px(self.height));
        format!(
            "<svg viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
             aria-labelledby=\"{id}t {id}d\"><title id=\"{id}t\">{}</title>\
             <desc id=\"{id}d\">{}</desc>{}</svg>\n",
            escape(title),
            escape(desc),
            self.body
        )
    }
}

/// The texts that describe a drawing.
pub(super) struct Descriptions {
    /// Unique on the page.
    pub(super) id: String,
    /// Its title.
    pub(super) title: String,
    /// A description of its content.
    pub(super) desc: String,
}

fn tip_attribute(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!(" data-tip=\"{}\"", escape(tip)) }
}

/// A coordinate: one decimal, none if it is zero.
pub(super) fn px(value: f64) -> String {
    let mut text = String::new();
    push_px(&mut text, value);
    text
}

/// Adds [`px`] of a value. A page has tens of thousands, for which formatting of floats takes long.
fn push_px(text: &mut String, value: f64) {
    let value = if value.is_finite() { value } else { 0.0 };
    let Some(tenths) = tenths(value) else {
        let exact = format!("{value:.1}");
        let shown = exact.strip_suffix(".0").unwrap_or(&exact);
        return text.push_str(if shown == "-0" { "0" } else { shown });
    };
    if tenths < 0 {
        text.push('-');
    }
    push_digits(text, tenths.unsigned_abs() / 10);
    let tenth = tenths.unsigned_abs() % 10;
    if tenth > 0 {
        text.push('.');
        push_digits(text, tenth);
    }
}

/// Adds a number.
fn push_digits(text: &mut String, mut number: u32) {
    let mut digits = ['0'; 10];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = char::from(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend(&digits[first..]);
}

/// The tenths to which `{:.1}` rounds; `None` where this is not seen at once.
fn tenths(value: f64) -> Option<i32> {
    let times_ten = value * 10.0;
    let below = times_ten.floor();
    let rest = times_ten - below;
    // A product that was rounded to the middle may come from either side of it.
    let is_clear = rest != 0.5 && times_ten.abs() < 1e9;
    is_clear.then(|| below as i32 + i32::from(rest > 0.5))
}

/// Adds two coordinates of a path.
fn push_point(path: &mut String, at: (f64, f64)) {
    push_px(path, at.0);
    path.push(' ');
    push_px(path, at.1);
}

/// Two coordinates of a path.
pub(super) fn point(at: (f64, f64)) -> String {
    let mut text = String::new();
    push_point(&mut text, at);
    text
}

/// A line through points.
pub(super) fn polyline(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    let (mut next, mut last) = (String::new(), String::new());
    for at in points {
        next.clear();
        push_point(&mut next, at);
        if next != last {
            d.push(if d.is_empty() { 'M' } else { 'L' });
            d.push_str(&next);
            std::mem::swap(&mut next, &mut last);
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use super::px;

    #[test]
    fn a_coordinate_is_rounded_as_by_exact_formatting() {
        let on_a_grid = (-4000..4000).flat_map(|n| [64.0, 20.0, 7.0].map(|of| f64::from(n) / of));
        let beside = on_a_grid.flat_map(|value| [value.next_down(), value, value.next_up()]);
        for value in beside.chain([-0.0, 1e8, -1e12, 4e300]) {
            let exact = format!("{value:.1}");
            let exact = exact.strip_suffix(".0").unwrap_or(&exact);
            assert_eq!(px(value), if exact == "-0" { "0" } else { exact }, "{value:e}");
        }
        assert_eq!(px(f64::NAN), "0");
    }
}

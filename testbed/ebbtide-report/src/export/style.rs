//! Styles that the page's style sheet gives to the classes of a drawing, on white paper.

use std::collections::BTreeMap;

/// Properties by name, all references resolved.
pub(super) type Style = BTreeMap<String, String>;

/// The rules for drawings, in their order.
pub(super) struct StyleSheet {
    variables: BTreeMap<String, String>,
    rules: Vec<(Selector, Vec<(String, String)>)>,
}

struct Selector {
    tag: Option<String>,
    classes: Vec<String>,
}

impl StyleSheet {
    /// The page's own.
    pub(super) fn page() -> Self {
        Self::parse(include_str!("../style.css"))
    }

    fn parse(css: &str) -> Self {
        let mut sheet = Self { variables: BTreeMap::new(), rules: Vec::new() };
        let mut rest = css;
        while let Some((selectors, after)) = rest.split_once('{') {
            let selectors = selectors.trim();
            if selectors.starts_with('@') {
                // What depends on the screen is not for paper.
                rest = skip_block(after);
                continue;
            }
            let Some((body, after)) = after.split_once('}') else { break };
            rest = after;
            let declarations: Vec<(String, String)> = body
                .split(';')
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
                .collect();
            if selectors == ":root" {
                sheet.variables.extend(declarations);
                continue;
            }
            for selector in selectors.split(',').filter_map(|text| Selector::parse(text.trim())) {
                sheet.rules.push((selector, declarations.clone()));
            }
        }
        sheet
    }

    /// The style of an element within another one.
    pub(super) fn style(&self, tag: &str, classes: &str, parent: &Style) -> Style {
        let inherited = ["color", "--dash", "fill", "stroke", "font-size", "font-weight"];
        let mut style: Style = parent
            .iter()
            .filter(|(name, _)| inherited.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let classes: Vec<&str> = classes.split_whitespace().collect();
        for (_, declarations) in self.rules.iter().filter(|(s, _)| s.matches(tag, &classes)) {
            style.extend(declarations.iter().cloned());
        }
        // First what others refer to.
        if let Some(color) = style.get("color").cloned() {
            let color = self.resolve(&color, &style);
            style.insert("color".to_owned(), color);
        }
        let resolved: Style =
            style.iter().map(|(name, value)| (name.clone(), self.resolve(value, &style))).collect();
        resolved
    }

    fn resolve(&self, value: &str, style: &Style) -> String {
        let own = style.get("color").map_or("#1b1f24", String::as_str);
        if value == "currentColor" || value.starts_with("color-mix") {
            return if own == "currentColor" { "#1b1f24".to_owned() } else { own.to_owned() };
        }
        let Some(inner) = value.strip_prefix("var(").and_then(|v| v.strip_suffix(')')) else {
            return value.to_owned();
        };
        let (name, fallback) = inner.split_once(',').unwrap_or((inner, ""));
        let found = style.get(name).or_else(|| self.variables.get(name));
        found.map_or_else(|| fallback.trim().to_owned(), Clone::clone)
    }
}

impl Selector {
    /// A tag, or classes of one element, within a drawing or anywhere; `None` for anything else.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("svg ").unwrap_or(text);
        if text.contains([' ', ':', '[', '>', '#', '*']) {
            return None;
        }
        let mut parts = text.split('.');
        let tag = parts.next().filter(|tag| !tag.is_empty()).map(str::to_owned);
        Some(Self { tag, classes: parts.map(str::to_owned).collect() })
    }

    fn matches(&self, tag: &str, classes: &[&str]) -> bool {
        self.tag.as_deref().is_none_or(|own| own == tag)
            && self.classes.iter().all(|class| classes.contains(&class.as_str()))
    }
}

/// Skips the rest of a block that contains other blocks, and returns the text after it.
fn skip_block(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

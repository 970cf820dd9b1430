//! The published figures.

/// The file of figures, which begins with its sources.
pub const FIGURES: &str = include_str!("../published/figures.csv");

/// The quantity of a published figure.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A quantile of the flow completion time over clients and replications, s. The share is from
    /// 0 to 1.
    FctQuantile(f64),
    /// Exchanges with this many retransmissions, % of all; 4 stands for 4 or more.
    RetransmissionClass(usize),
    /// The median over clients of unnecessary retransmissions.
    Unnecessary,
    /// The difference of that median to another control's, as a reduction in %.
    UnnecessaryReduction,
    /// The difference of the median flow completion time to another control's, as an increase in
    /// %.
    FctChange,
}

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedFigure {
    /// The paper.
    pub source: &'static str,
    /// Its table or section.
    pub table: &'static str,
    /// A description in words.
    pub name: &'static str,
    /// The quantity.
    pub quantity: Quantity,
    /// The cell's settings: workload, clients, buffer, errors.
    pub settings: [&'static str; 4],
    /// The control.
    pub cc: &'static str,
    /// The control with which it is compared; empty if there is none.
    pub against: &'static str,
    /// The published value.
    pub value: f64,
}

impl Quantity {
    fn parse(name: &str) -> Option<Self> {
        if let Some(class) = name.strip_prefix("exchanges with ") {
            let digits = class.split(' ').next()?;
            return digits.parse().ok().map(Self::RetransmissionClass);
        }
        Some(match name {
            "smallest FCT (s)" => Self::FctQuantile(0.0),
            "10th percentile of FCT (s)" => Self::FctQuantile(0.10),
            "25th percentile of FCT (s)" => Self::FctQuantile(0.25),
            "median FCT (s)" => Self::FctQuantile(0.50),
            "75th percentile of FCT (s)" => Self::FctQuantile(0.75),
            "90th percentile of FCT (s)" => Self::FctQuantile(0.90),
            "largest FCT (s)" => Self::FctQuantile(1.0),
            "unnecessary retransmissions per client (median)" => Self::Unnecessary,
            "reduction of unnecessary retransmissions (%)" => Self::UnnecessaryReduction,
            "change of the median FCT (%)" => Self::FctChange,
            _ => return None,
        })
    }

    /// Whether its values are percentages, which are compared by their difference.
    #[must_use]
    pub const fn is_percentage(self) -> bool {
        matches!(self, Self::RetransmissionClass(_) | Self::UnnecessaryReduction | Self::FctChange)
    }
}

impl PublishedFigure {
    /// All figures of a paper, in the order of the file. Lines that do not contain a figure are
    /// skipped; a test checks that there are none.
    #[must_use]
    pub fn published_by(source: &str) -> Vec<Self> {
        Self::lines().filter_map(Self::parse).filter(|figure| figure.source == source).collect()
    }

    fn lines() -> impl Iterator<Item = &'static str> {
        FIGURES.lines().filter(|line| !line.starts_with('#')).skip(1)
    }

    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split(',');
        let (source, table, name) = (fields.next()?, fields.next()?, fields.next()?);
        let settings = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
        let (cc, against) = (fields.next()?, fields.next()?);
        let value = fields.next()?.parse().ok()?;
        let quantity = Quantity::parse(name)?;
        Some(Self { source, table, name, quantity, settings, cc, against, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_file_is_a_figure_of_a_known_quantity() {
        for line in PublishedFigure::lines() {
            assert!(PublishedFigure::parse(line).is_some(), "{line}");
        }
        assert!(
            PublishedFigure::published_by("ANRW18").len() > 30
                && PublishedFigure::published_by("Thesis19").len() > 70
        );
    }
}

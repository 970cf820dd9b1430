//! Values from pairs of a name and a text, by serde.

use core::fmt;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, Deserializer, EnumAccess, IntoDeserializer, Unexpected, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

/// Why the pairs are not such a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Reads a value from pairs; `what` is what one of them is called in errors.
pub(super) fn from_pairs<T: DeserializeOwned>(
    what: &'static str,
    pairs: &[(&str, &str)],
) -> Result<T, Error> {
    T::deserialize(Pairs { what, pairs })
}

struct Pairs<'a> {
    what: &'static str,
    pairs: &'a [(&'a str, &'a str)],
}

impl<'a> Pairs<'a> {
    /// Each name once, with all its texts.
    fn grouped(&self) -> Vec<(&'a str, NamedTexts<'a>)> {
        let mut grouped: Vec<(&str, NamedTexts<'_>)> = Vec::new();
        for &(name, text) in self.pairs {
            match grouped.iter_mut().find(|(known, _)| *known == name) {
                Some((_, value)) => value.texts.push(text),
                None => {
                    grouped.push((name, NamedTexts { what: self.what, name, texts: vec![text] }))
                }
            }
        }
        grouped
    }

    /// The only value.
    fn only(&self) -> Result<NamedTexts<'a>, Error> {
        match self.pairs {
            [(name, text)] => Ok(NamedTexts { what: self.what, name, texts: vec![text] }),
            pairs => Err(Error(format!("there are {} {}s instead of one", pairs.len(), self.what))),
        }
    }
}

macro_rules! only {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.only()?.$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Pairs<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    only! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.pairs.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let what = self.what;
        let values = self.pairs.iter();
        visitor.visit_seq(SeqDeserializer::new(values.map(|&(name, text)| NamedTexts {
            what,
            name,
            texts: vec![text],
        })))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        if len != self.pairs.len() {
            let count = self.pairs.len();
            return Err(Error(format!("there are {count} {}s instead of {len}", self.what)));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(MapDeserializer::new(self.grouped().into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! { identifier ignored_any }
}

/// The texts of one name.
struct NamedTexts<'a> {
    what: &'static str,
    name: &'a str,
    texts: Vec<&'a str>,
}

impl<'a> NamedTexts<'a> {
    fn text(&self) -> Result<&'a str, Error> {
        match self.texts.as_slice() {
            [text] => Ok(text),
            _ => Err(Error(format!("the {} '{}' is given several times", self.what, self.name))),
        }
    }

    /// An error that names the value and says what it should be.
    fn named(&self, expected: &str) -> Error {
        let text = self.texts.first().unwrap_or(&"");
        Error(format!("the {} '{}' is '{text}', which is not {expected}", self.what, self.name))
    }
}

impl<'de> IntoDeserializer<'de, Error> for NamedTexts<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $type:ty, $expected:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.text()?.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(self.named($expected)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for NamedTexts<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.text()? {
            "" | "true" | "1" => visitor.visit_bool(true),
            "false" | "0" => visitor.visit_bool(false),
            _ => Err(self.named("true or false")),
        }
    }

    parsed! {
        deserialize_i8 visit_i8 i8, "a whole number from -128 to 127";
        deserialize_i16 visit_i16 i16, "a whole number from -32768 to 32767";
        deserialize_i32 visit_i32 i32, "a whole number of 32 bits";
        deserialize_i64 visit_i64 i64, "a whole number of 64 bits";
        deserialize_i128 visit_i128 i128, "a whole number of 128 bits";
        deserialize_u8 visit_u8 u8, "a whole number from 0 to 255";
        deserialize_u16 visit_u16 u16, "a whole number from 0 to 65535";
        deserialize_u32 visit_u32 u32, "a whole number from 0 to 4294967295";
        deserialize_u64 visit_u64 u64, "a whole number from 0 on of 64 bits";
        deserialize_u128 visit_u128 u128, "a whole number from 0 on of 128 bits";
        deserialize_f32 visit_f32 f32, "a number";
        deserialize_f64 visit_f64 f64, "a number";
        deserialize_char visit_char char, "one character";
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (what, name) = (self.what, self.name);
        let values = self.texts.into_iter();
        visitor.visit_seq(SeqDeserializer::new(values.map(|text| NamedTexts {
            what,
            name,
            texts: vec![text],
        })))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if !variants.contains(&self.text()?) {
            return Err(self.named(&format!("one of {}", variants.join(", "))));
        }
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier
        ignored_any
    }
}

/// Only variants without fields are known by a name alone.
impl<'de> EnumAccess<'de> for NamedTexts<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<T: serde::de::DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self), Error> {
        let name = self.text()?;
        Ok((seed.deserialize(name.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for NamedTexts<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: serde::de::DeserializeSeed<'de>>(
        self,
        _: T,
    ) -> Result<T::Value, Error> {
        Err(unsupported(&"a unit variant"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(unsupported(&"a unit variant"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(unsupported(&"a unit variant"))
    }
}

fn unsupported(expected: &dyn serde::de::Expected) -> Error {
    serde::de::Error::invalid_type(Unexpected::Other("a variant with fields"), expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Kelvin,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Wanted {
        room: String,
        #[serde(default)]
        level: Option<u8>,
        #[serde(default)]
        tag: Vec<i16>,
        #[serde(default)]
        verbose: bool,
        unit: Unit,
    }

    fn error<T: DeserializeOwned + fmt::Debug>(pairs: &[(&str, &str)]) -> String {
        from_pairs::<T>("query argument", pairs).unwrap_err().to_string()
    }

    #[test]
    fn a_struct_has_the_fields_that_are_named() {
        let pairs =
            [("unit", "kelvin"), ("tag", "1"), ("verbose", ""), ("room", "a/b"), ("tag", "-2")];
        let wanted = Wanted {
            room: "a/b".into(),
            level: None,
            tag: vec![1, -2],
            verbose: true,
            unit: Unit::Kelvin,
        };
        assert_eq!(from_pairs("query argument", &pairs), Ok(wanted));
    }

    #[test]
    fn one_value_and_tuples_need_no_names() {
        assert_eq!(from_pairs("path parameter", &[("id", "7")]), Ok(7_u32));
        assert_eq!(from_pairs("path parameter", &[("id", "é")]), Ok("é".to_owned()));
        let pair = [("id", "7"), ("name", "x")];
        assert_eq!(from_pairs("path parameter", &pair), Ok((7_u8, "x".to_owned())));
        assert_eq!(from_pairs("path parameter", &[("unit", "celsius")]), Ok(Unit::Celsius));
    }

    #[test]
    fn a_wrong_value_is_named() {
        assert_eq!(
            error::<u8>(&[("id", "256")]),
            "the query argument 'id' is '256', which is not a whole number from 0 to 255"
        );
        assert_eq!(error::<Wanted>(&[("unit", "kelvin")]), "missing field `room`");
        assert_eq!(
            error::<Unit>(&[("unit", "bar")]),
            "the query argument 'unit' is 'bar', which is not one of celsius, kelvin"
        );
        assert_eq!(
            error::<Wanted>(&[("room", "a"), ("room", "b"), ("unit", "kelvin")]),
            "the query argument 'room' is given several times"
        );
        assert_eq!(error::<(u8, u8)>(&[("a", "1")]), "there are 1 query arguments instead of 2");
    }
}

//! Values, sets, metrics and levels: what statements are made of.

use pest::iterators::Pair;

use super::{Children, Rule, Tree, only};
use crate::diagnostic::Kind;
use crate::source::Spanned;
use crate::syntax::ast::{
    Argument, ArithmeticOperator, CpuExpr, CpuExprKind, IrqExpr, IrqExprKind, KeyValue, LevelRef, Measure, MetricExpr,
    MetricExprKind, MetricName, Name, Number, SetOperator, Text, TextPart, Value,
};

/// Operators that one expression may hold. Far beyond any real one; keeps the tree shallow enough to walk.
const MAX_OPERATORS: usize = 256;

impl Tree {
    pub(super) fn text(&mut self, pair: Pair<'_, Rule>) -> Text {
        let span = self.span(&pair);
        let mut parts = Vec::new();
        let mut literal = String::new();
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::reference => {
                    if !literal.is_empty() {
                        parts.push(TextPart::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(TextPart::Reference(self.reference(child)));
                }
                Rule::escape => literal.push(match &child.as_str()[1..] {
                    "n" => '\n',
                    "t" => '\t',
                    other => other.chars().next().unwrap_or('\\'),
                }),
                Rule::text_dollar => literal.push_str("${"),
                Rule::bad_escape => {
                    let escape = child.as_str().to_owned();
                    self.slip(&child, Kind::UnknownEscape { escape });
                }
                Rule::bad_reference => self.slip(&child, Kind::WrongReference),
                _ => literal.push_str(child.as_str()),
            }
        }
        if !literal.is_empty() {
            parts.push(TextPart::Literal(literal));
        }
        Text { parts, span }
    }

    pub(super) fn reference(&self, pair: Pair<'_, Rule>) -> Name {
        let span = self.span(&pair);
        Spanned::new(only(pair).as_str().to_owned(), span)
    }

    pub(super) fn number(&self, pair: Pair<'_, Rule>) -> Number {
        let inner = if pair.as_rule() == Rule::literal { pair } else { only(pair) };
        if inner.as_rule() == Rule::reference {
            return Number::Reference(self.reference(inner));
        }
        let mut children = Children::of(inner);
        let digits = self.spanned(&children.must());
        Number::Literal { digits, unit: children.next().map(|unit| self.spanned(&unit)) }
    }

    pub(super) fn value(&mut self, pair: Pair<'_, Rule>) -> Value {
        let inner = only(pair);
        match inner.as_rule() {
            Rule::text => Value::Text(self.text(inner)),
            Rule::number => Value::Number(self.number(inner)),
            _ => Value::Word(self.spanned(&inner)),
        }
    }

    pub(super) fn key_value(&mut self, pair: Pair<'_, Rule>) -> KeyValue {
        let mut children = Children::of(pair);
        let key = self.spanned(&children.must());
        self.assign(&children.must());
        KeyValue { key, value: self.value(children.must()) }
    }

    pub(super) fn assign(&mut self, pair: &Pair<'_, Rule>) {
        if pair.as_rule() != Rule::assign {
            self.slip(pair, Kind::WrongAssignment { found: pair.as_str().to_owned() });
        }
    }

    pub(super) fn argument(&mut self, pair: Pair<'_, Rule>) -> Argument {
        let inner = only(pair);
        if inner.as_rule() == Rule::key_value {
            Argument::KeyValue(self.key_value(inner))
        } else {
            Argument::Value(self.value(inner))
        }
    }

    /// A relation; `equal` is what a lone `=` may have meant here.
    pub(super) fn relation(&mut self, pair: &Pair<'_, Rule>, equal: &'static str) -> Spanned<String> {
        let instead = match pair.as_str() {
            "=" => Some(equal),
            "=<" => Some("`<=`"),
            "=>" => Some("`>=`"),
            _ => None,
        };
        if let Some(instead) = instead {
            self.slip(pair, Kind::WrongRelation { found: pair.as_str().to_owned(), instead });
        }
        self.spanned(pair)
    }

    /// Two levels of binary operators, left to right: `set` rules hold `term` rules hold items.
    pub(super) fn too_many_operators(&mut self, pair: &Pair<'_, Rule>) -> bool {
        let operators = pair.clone().into_inner().flatten().filter(|inner: &Pair<'_, Rule>| {
            matches!(
                inner.as_rule(),
                Rule::union
                    | Rule::difference
                    | Rule::intersection
                    | Rule::add
                    | Rule::subtract
                    | Rule::multiply
                    | Rule::divide
            )
        });
        if operators.take(MAX_OPERATORS + 1).count() <= MAX_OPERATORS {
            return false;
        }
        self.slip(pair, Kind::TooManyOperators { limit: MAX_OPERATORS });
        true
    }

    pub(super) fn set_operator(&self, pair: &Pair<'_, Rule>) -> Spanned<SetOperator> {
        let operator = match pair.as_rule() {
            Rule::union => SetOperator::Union,
            Rule::difference => SetOperator::Difference,
            _ => SetOperator::Intersection,
        };
        Spanned::new(operator, self.span(pair))
    }

    pub(super) fn cpu_set(&mut self, pair: Pair<'_, Rule>) -> CpuExpr {
        if self.too_many_operators(&pair) {
            return CpuExpr { kind: CpuExprKind::Online, span: self.span(&pair) };
        }
        self.cpu_expr(pair)
    }

    pub(super) fn cpu_expr(&mut self, pair: Pair<'_, Rule>) -> CpuExpr {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::cpu_set | Rule::cpu_term => self.cpu_binary(pair),
            rule => CpuExpr { kind: self.cpu_kind(rule, pair), span },
        }
    }

    pub(super) fn cpu_binary(&mut self, pair: Pair<'_, Rule>) -> CpuExpr {
        let mut children = Children::of(pair);
        let mut left = self.cpu_expr(children.must());
        while let Some(operator) = children.next() {
            let operator = self.set_operator(&operator);
            let right = self.cpu_expr(children.must());
            let span = left.span.to(right.span);
            left =
                CpuExpr { kind: CpuExprKind::Binary { operator, left: Box::new(left), right: Box::new(right) }, span };
        }
        left
    }

    pub(super) fn cpu_kind(&mut self, rule: Rule, pair: Pair<'_, Rule>) -> CpuExprKind {
        match rule {
            Rule::siblings => CpuExprKind::Siblings(Box::new(self.cpu_expr(only(pair)))),
            Rule::cpu => {
                let inner = only(pair);
                if inner.as_rule() == Rule::cpu_list_slip {
                    let list = without_blanks(inner.as_str());
                    self.slip(&inner, Kind::ListForOneCpu { list: list.clone() });
                    return CpuExprKind::Cpus(Spanned::new(list, self.span(&inner)));
                }
                CpuExprKind::Cpu(self.number(inner))
            }
            Rule::cpus => {
                let inner = only(pair);
                let list = without_blanks(inner.as_str());
                if inner.as_rule() == Rule::cpu_list_blank_slip {
                    self.slip(&inner, Kind::BlankInList { list: list.clone() });
                }
                CpuExprKind::Cpus(Spanned::new(list, self.span(&inner)))
            }
            Rule::core => CpuExprKind::Core(self.number(only(pair))),
            Rule::node => CpuExprKind::Node(self.number(only(pair))),
            Rule::local_to => CpuExprKind::LocalTo(self.spanned(&only(pair))),
            Rule::local => CpuExprKind::Local,
            Rule::online => CpuExprKind::Online,
            Rule::isolated => CpuExprKind::Isolated,
            Rule::first_threads => CpuExprKind::FirstThreads,
            _ => CpuExprKind::Name(pair.as_str().to_owned()),
        }
    }

    pub(super) fn irq_set(&mut self, pair: Pair<'_, Rule>) -> IrqExpr {
        if self.too_many_operators(&pair) {
            return IrqExpr { kind: IrqExprKind::All, span: self.span(&pair) };
        }
        self.irq_expr(pair)
    }

    pub(super) fn irq_expr(&mut self, pair: Pair<'_, Rule>) -> IrqExpr {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::irq_set | Rule::irq_term => self.irq_binary(pair),
            Rule::irq_selector => IrqExpr { kind: self.irq_selector(pair), span },
            _ => IrqExpr { kind: IrqExprKind::Name(pair.as_str().to_owned()), span },
        }
    }

    pub(super) fn irq_binary(&mut self, pair: Pair<'_, Rule>) -> IrqExpr {
        let mut children = Children::of(pair);
        let mut left = self.irq_expr(children.must());
        while let Some(operator) = children.next() {
            let operator = self.set_operator(&operator);
            let right = self.irq_expr(children.must());
            let span = left.span.to(right.span);
            left =
                IrqExpr { kind: IrqExprKind::Binary { operator, left: Box::new(left), right: Box::new(right) }, span };
        }
        left
    }

    pub(super) fn irq_selector(&mut self, pair: Pair<'_, Rule>) -> IrqExprKind {
        let inner = only(pair);
        match inner.as_rule() {
            Rule::irq_all => IrqExprKind::All,
            Rule::irq_class => IrqExprKind::Class(self.spanned(&only(inner))),
            Rule::irq_driver => IrqExprKind::Driver(self.value(only(inner))),
            Rule::irq_pci => IrqExprKind::Pci(self.spanned(&only(inner))),
            Rule::irq_device => IrqExprKind::Device(self.value(only(inner))),
            Rule::irq_number => IrqExprKind::Number(self.number(only(inner))),
            Rule::text => IrqExprKind::Glob(self.text(inner)),
            _ => {
                self.slip(&inner, Kind::BareIrqName { word: inner.as_str().to_owned() });
                IrqExprKind::All
            }
        }
    }

    pub(super) fn metric_name(&self, pair: &Pair<'_, Rule>) -> MetricName {
        MetricName { path: pair.as_str().to_owned(), span: self.span(pair) }
    }

    /// A metric or plain arithmetic of metrics; its path has one blank around every operator.
    pub(super) fn metric_ref(&mut self, pair: Pair<'_, Rule>) -> MetricName {
        let span = self.span(&pair);
        let pieces: Vec<&str> = Children::of(pair).map(|piece| piece.as_str()).collect();
        MetricName { path: pieces.join(" "), span }
    }

    pub(super) fn metric_expr(&mut self, pair: Pair<'_, Rule>) -> MetricExpr {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::metric_expr | Rule::metric_product => self.metric_binary(pair),
            Rule::number => MetricExpr { kind: MetricExprKind::Number(self.number(pair)), span },
            _ => MetricExpr { kind: MetricExprKind::Metric(self.metric_name(&pair)), span },
        }
    }

    pub(super) fn metric_binary(&mut self, pair: Pair<'_, Rule>) -> MetricExpr {
        let mut children = Children::of(pair);
        let mut left = self.metric_expr(children.must());
        while let Some(operator) = children.next() {
            let kind = match operator.as_rule() {
                Rule::add => ArithmeticOperator::Add,
                Rule::subtract => ArithmeticOperator::Subtract,
                Rule::multiply => ArithmeticOperator::Multiply,
                _ => ArithmeticOperator::Divide,
            };
            let operator = Spanned::new(kind, self.span(&operator));
            let right = self.metric_expr(children.must());
            let span = left.span.to(right.span);
            left = MetricExpr {
                kind: MetricExprKind::Binary { operator, left: Box::new(left), right: Box::new(right) },
                span,
            };
        }
        left
    }

    pub(super) fn measured(&mut self, pair: Pair<'_, Rule>) -> Measure {
        let mut children = Children::of(pair);
        let expr = children.must();
        let expr = if self.too_many_operators(&expr) {
            MetricExpr { span: self.span(&expr), kind: MetricExprKind::Metric(self.metric_name(&expr)) }
        } else {
            self.metric_expr(expr)
        };
        Measure {
            expr,
            label: children.next_of(Rule::text).map(|text| self.text(text)),
            direction: children.next().map(|direction| self.spanned(&direction)),
        }
    }

    /// A level by its word, number or text.
    pub(super) fn level(&mut self, pair: Pair<'_, Rule>) -> Name {
        let span = self.span(&pair);
        let inner = only(pair);
        if inner.as_rule() != Rule::text {
            return self.spanned(&inner);
        }
        let text = self.text(inner);
        let literal = text.parts.iter().map(|part| match part {
            TextPart::Literal(literal) => literal.clone(),
            TextPart::Reference(name) => format!("${{{}}}", name.value),
        });
        Spanned::new(literal.collect(), span)
    }

    pub(super) fn level_ref(&mut self, pair: Pair<'_, Rule>) -> LevelRef {
        let mut children = Children::of(pair);
        let factor = children.next_of(Rule::level_factor).map(|factor| self.spanned(&only(factor)));
        LevelRef { factor, level: self.level(children.must()) }
    }
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

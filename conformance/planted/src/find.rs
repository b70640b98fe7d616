//! Where bugs can be planted: every comparison, connective, negation, sum, literal, condition
//! and statement of a file outside of its tests.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, ReturnType, Stmt, Type, UnOp};

use crate::bug::{Bug, Form};

/// All bugs that can be planted in `text`, the contents of `file`.
pub fn bugs(file: &str, text: &str) -> Result<Vec<Bug>, syn::Error> {
    let tree = syn::parse_file(text)?;
    let mut finder = Finder {
        file,
        text,
        found: Vec::new(),
    };
    finder.visit_file(&tree);
    Ok(finder.found)
}

struct Finder<'t> {
    file: &'t str,
    text: &'t str,
    found: Vec<Bug>,
}

impl Finder<'_> {
    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    fn add(&mut self, node: &impl Spanned, wrong: String, form: Form) {
        let bytes = node.span().byte_range();
        let right = self.text[bytes.clone()].to_owned();
        let line = node.span().start().line;
        let short = |text: &str| {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            match text.char_indices().nth(60) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        };
        let name = format!(
            "{}:{line}: `{}` -> `{}`",
            self.file,
            short(&right),
            short(&wrong)
        );
        let file = self.file.to_owned();
        self.found.push(Bug {
            file,
            bytes,
            right,
            wrong,
            form,
            name,
        });
    }

    fn binary(&mut self, node: &syn::ExprBinary) {
        let operator = match node.op {
            BinOp::Lt(_) => "<=",
            BinOp::Le(_) => "<",
            BinOp::Gt(_) => ">=",
            BinOp::Ge(_) => ">",
            BinOp::Eq(_) => "!=",
            BinOp::Ne(_) => "==",
            BinOp::And(_) => "||",
            BinOp::Or(_) => "&&",
            BinOp::Add(_) => "-",
            BinOp::Sub(_) => "+",
            _ => return,
        };
        if has_let(&node.left) || has_let(&node.right) {
            return;
        }
        let wrong = format!(
            "{} {operator} {}",
            self.source(&*node.left),
            self.source(&*node.right)
        );
        self.add(node, wrong, Form::Expression);
    }

    fn literal(&mut self, node: &syn::ExprLit) {
        match &node.lit {
            Lit::Bool(value) => self.add(node, (!value.value).to_string(), Form::Expression),
            Lit::Int(value) => {
                if let Ok(number) = value.base10_parse::<u64>()
                    && let Some(next) = number.checked_add(1)
                {
                    self.add(node, format!("{next}{}", value.suffix()), Form::Expression);
                }
            }
            _ => {}
        }
    }

    fn method(&mut self, node: &syn::ExprMethodCall) {
        let other = match node.method.to_string().as_str() {
            "any" => "all",
            "all" => "any",
            "min" => "max",
            "max" => "min",
            "is_some" => "is_none",
            "is_none" => "is_some",
            "is_ok" => "is_err",
            "is_err" => "is_ok",
            "first" => "last",
            "last" => "first",
            "starts_with" => "ends_with",
            "ends_with" => "starts_with",
            _ => return,
        };
        let (whole, method) = (node.span().byte_range(), node.method.span().byte_range());
        let wrong = format!(
            "{}{other}{}",
            &self.text[whole.start..method.start],
            &self.text[method.end..whole.end]
        );
        self.add(node, wrong, Form::Expression);
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, node: &'ast syn::Item) {
        match node {
            // Evaluated by the compiler, where the switch cannot be read.
            syn::Item::Const(_) | syn::Item::Static(_) | syn::Item::Macro(_) => {}
            syn::Item::Fn(function) if function.sig.constness.is_some() => {}
            syn::Item::Mod(module) if is_test(&module.attrs) => {}
            syn::Item::Fn(function) if is_test(&function.attrs) => {}
            syn::Item::Enum(_) | syn::Item::Struct(_) | syn::Item::Type(_) => {}
            _ => visit::visit_item(self, node),
        }
    }

    fn visit_impl_item(&mut self, node: &'ast syn::ImplItem) {
        match node {
            syn::ImplItem::Const(_) | syn::ImplItem::Macro(_) | syn::ImplItem::Type(_) => {}
            syn::ImplItem::Fn(function) if function.sig.constness.is_some() => {}
            _ => visit::visit_impl_item(self, node),
        }
    }

    fn visit_signature(&mut self, _: &'ast syn::Signature) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.early_return(&node.sig, &node.block);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.early_return(&node.sig, &node.block);
        visit::visit_item_fn(self, node);
    }

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr); // the length is a constant
    }

    fn visit_expr(&mut self, node: &'ast Expr) {
        match node {
            Expr::Const(_) => return,
            Expr::Binary(binary) => self.binary(binary),
            Expr::Lit(literal) => self.literal(literal),
            Expr::MethodCall(call) => self.method(call),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let wrong = self.source(&*unary.expr).to_owned();
                self.add(unary, wrong, Form::Expression);
            }
            Expr::If(branch) if !has_let(&branch.cond) => {
                let wrong = format!("!({})", self.source(&*branch.cond));
                self.add(&*branch.cond, wrong, Form::Expression);
            }
            _ => {}
        }
        visit::visit_expr(self, node);
    }

    fn visit_stmt(&mut self, node: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = node {
            let deletable = matches!(expression, Expr::MethodCall(_) | Expr::Call(_))
                || matches!(expression, Expr::Assign(_))
                || matches!(expression, Expr::Try(_))
                || matches!(expression, Expr::Binary(binary) if is_assignment(&binary.op));
            if deletable {
                self.add(node, String::new(), Form::Statement);
            }
        }
        visit::visit_stmt(self, node);
    }
}

impl Finder<'_> {
    /// A function of a truth value that answers without looking.
    fn early_return(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let ReturnType::Type(_, answer) = &signature.output else {
            return;
        };
        if !matches!(&**answer, Type::Path(path) if path.path.is_ident("bool")) {
            return;
        }
        if let Some(first) = block.stmts.first() {
            let answer = if self.found.len().is_multiple_of(2) {
                "true"
            } else {
                "false"
            };
            let bytes = first.span().byte_range();
            let line = first.span().start().line;
            let name = format!(
                "{}:{line}: `{}` always answers {answer}",
                self.file, signature.ident
            );
            self.found.push(Bug {
                file: self.file.to_owned(),
                bytes: bytes.start..bytes.start,
                right: String::new(),
                wrong: format!("return {answer};"),
                form: Form::Statement,
                name,
            });
        }
    }
}

fn is_assignment(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitOrAssign(_) | BinOp::BitAndAssign(_)
    )
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Ident>()
                    .is_ok_and(|name| name == "test"))
    })
}

/// Whether `let` binds something inside of the condition.
fn has_let(expression: &Expr) -> bool {
    struct Lets(bool);
    impl Visit<'_> for Lets {
        fn visit_expr_let(&mut self, _: &syn::ExprLet) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &syn::ExprClosure) {}
        fn visit_block(&mut self, _: &syn::Block) {}
    }
    let mut lets = Lets(false);
    lets.visit_expr(expression);
    lets.0
}

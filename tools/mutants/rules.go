package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// expression mutates operators, conditions and the literals true and false. It reports whether to look into the
// expression.
func (w *writer) expression(c *astutil.Cursor, n ast.Expr) bool {
	if _, isType := n.(*ast.ArrayType); isType {
		return false
	}

	id, named := n.(*ast.Ident)
	if named && (id.Name == "true" || id.Name == "false") && w.isBool(n) && w.info.Uses[id].Pkg() == nil {
		w.negate(n, map[string]string{"true": "false", "false": "true"}[id.Name])

		return true
	}

	if is := w.info.Types[n]; is.Value != nil || is.IsType() {
		return true
	}

	binary, ok := n.(*ast.BinaryExpr)

	switch {
	case ok:
		w.binary(binary)
	case w.isBool(n) && isCondition(c):
		w.negate(n, strings.TrimPrefix("!"+w.text(n), "!!"))
	}

	return true
}

func (w *writer) binary(n *ast.BinaryExpr) {
	x, y := w.text(n.X), w.text(n.Y)

	switch n.Op { //nolint:exhaustive // other operators stay
	case token.LAND, token.LOR:
		if !w.isBool(n) {
			return
		}

		other := map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}[n.Op]
		id := w.add(n, fmt.Sprintf("%s %s %s", x, other, y))
		// By De Morgan, a && b is !(!a || !b), so three switches turn one operator into the other.
		on := fmt.Sprintf("mutant(%d) != ", id)
		w.around(n, "("+on+"(("+on+"(", "))))")
		w.replace(n.OpPos, 2, fmt.Sprintf(")) %s (%s(", n.Op, on))
	case token.EQL:
		w.negate(n, x+" != "+y)
	case token.NEQ:
		w.negate(n, x+" == "+y)
	case token.LSS:
		w.negate(n, x+" >= "+y)
		w.call(n, "mutantLess", x+" <= "+y)
	case token.LEQ:
		w.negate(n, x+" > "+y)
		w.call(n, "mutantAtMost", x+" < "+y)
	case token.GTR:
		w.negate(n, x+" <= "+y)
		w.call(n, "mutantMore", x+" >= "+y)
	case token.GEQ:
		w.negate(n, x+" < "+y)
		w.call(n, "mutantAtLeast", x+" > "+y)
	case token.ADD, token.SUB:
		basic, ok := w.info.TypeOf(n).Underlying().(*types.Basic)
		if !ok || basic.Info()&(types.IsInteger|types.IsFloat) == 0 {
			return
		}

		if n.Op == token.ADD {
			w.call(n, "mutantSum", x+" - "+y)
		} else {
			w.call(n, "mutantDifference", x+" + "+y)
		}
	}
}

// negate inverts a value: mutant(1) != (value).
func (w *writer) negate(n ast.Expr, changed string) {
	w.around(n, fmt.Sprintf("(mutant(%d) != (", w.add(n, changed)), "))")
}

// call replaces an operator by a function of the switch.
func (w *writer) call(n *ast.BinaryExpr, function, changed string) {
	w.around(n, fmt.Sprintf("%s(%d, ", function, w.add(n, changed)), ")")
	w.replace(n.OpPos, len(n.Op.String()), ", ")
}

// never skips the early end of a function or of a round of a loop.
func (w *writer) never(n *ast.IfStmt) {
	if n.Else != nil || len(n.Body.List) == 0 || !w.isBool(n.Cond) {
		return
	}

	switch n.Body.List[len(n.Body.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		w.around(n.Cond, "(", fmt.Sprintf(") && !mutant(%d)", w.add(n.Cond, "false")))
	}
}

// statement removes a call or an assignment.
func (w *writer) statement(c *astutil.Cursor, n ast.Stmt) {
	if c.Index() < 0 || (c.Name() != "List" && c.Name() != "Body") {
		return
	}

	switch s := n.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return
		}

		if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
			return
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || w.text(s.Lhs[0]) == "_" {
			return
		}
	case *ast.IncDecStmt:
	default:
		return
	}

	w.around(n, fmt.Sprintf("if !mutant(%d) { ", w.add(n, "removed")), " }")
}

// results returns nil for errors, and the zero value for others than truth values.
func (w *writer) results(n *ast.ReturnStmt) {
	results := w.signature().Results()
	if len(n.Results) != results.Len() {
		return
	}

	for i, value := range n.Results {
		to, is := results.At(i).Type(), w.info.Types[value]

		switch {
		case is.IsNil() || w.isBool(value) || isZero(value):
		case types.Identical(to, types.Universe.Lookup("error").Type()):
			w.around(value, fmt.Sprintf("mutantZero[error](%d, ", w.add(value, "nil")), ")")
		case w.infers(value, to):
			w.around(value, fmt.Sprintf("mutantZero(%d, ", w.add(value, "zero")), ")")
		}
	}
}

// infers reports whether the compiler infers the type of a result from the value alone.
func (w *writer) infers(value ast.Expr, to types.Type) bool {
	if w.info.Types[value].Value == nil {
		return types.Identical(w.info.TypeOf(value), to)
	}

	var declared types.Object

	switch v := value.(type) {
	case *ast.Ident:
		declared = w.info.Uses[v]
	case *ast.SelectorExpr:
		declared = w.info.Uses[v.Sel]
	}

	if declared != nil && types.Identical(declared.Type(), to) {
		return true
	}

	return types.Identical(to, types.Typ[types.String]) || types.Identical(to, types.Typ[types.Int])
}

// isZero reports whether a value is written as a zero value.
func isZero(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.BasicLit:
		return v.Value == `""` || v.Value == "0"
	case *ast.CompositeLit:
		return len(v.Elts) == 0
	}

	return false
}

// signature is that of the function around a node.
func (w *writer) signature() *types.Signature {
	for i := len(w.within) - 1; ; i-- {
		switch f := w.within[i].(type) {
		case *ast.FuncLit:
			return w.info.TypeOf(f).Underlying().(*types.Signature) //nolint:errcheck,forcetypeassert // of a function
		case *ast.FuncDecl:
			return w.info.Defs[f.Name].Type().(*types.Signature) //nolint:errcheck,forcetypeassert // of a function
		}
	}
}

// isBool reports whether a value has the type bool itself, so that operators of the switch have its type.
func (w *writer) isBool(n ast.Expr) bool {
	t := w.info.TypeOf(n)

	return t != nil && (types.Identical(t, types.Typ[types.Bool]) || types.Identical(t, types.Typ[types.UntypedBool]))
}

// isCondition reports whether the value decides something: in a statement, an operator or a result.
func isCondition(c *astutil.Cursor) bool {
	switch parent := c.Parent().(type) {
	case *ast.IfStmt, *ast.ForStmt:
		return c.Name() == "Cond"
	case *ast.CaseClause:
		return c.Name() == "List"
	case *ast.ReturnStmt:
		return true
	case *ast.BinaryExpr:
		return parent.Op == token.LAND || parent.Op == token.LOR
	}

	return false
}

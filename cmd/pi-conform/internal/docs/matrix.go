package docs

import "github.com/pi-conform/pi-conform/cmd/pi-conform/internal/matrix"

// Matrix is the document about several subjects.
func Matrix(m *matrix.Matrix) string {
	return "# Subjects side by side\n\n<!-- Written by «make matrix» from a real run: do not edit. -->\n\n" + matrix.Markdown(m)
}

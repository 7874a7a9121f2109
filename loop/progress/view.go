package progress

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// View is what a tool shows while it runs. There is nothing else that it could
// say: the card's kind, input, places and status are not a tool's to change
// (PROG-9).
type View struct {
	Title   *string `json:"title,omitempty"`
	Content []Block `json:"content,omitempty"` // replaces what was shown before
}

// Block is one piece of a view's content.
type Block struct {
	Type     string `json:"type"` // BlockText or BlockImage
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"`     // of an image, base64
	MimeType string `json:"mimeType,omitempty"` // of an image
}

// The types of blocks.
const (
	BlockText  = "text"
	BlockImage = "image"
)

// Text is a view of one text.
func Text(text string) View { return View{Content: []Block{{Type: BlockText, Text: text}}} }

// The reasons for which a view is invalid.
var (
	ErrEmptyView = errors.New("a view has neither title nor content")
	ErrTooLarge  = errors.New("a view is too large")
	ErrBlock     = errors.New("a view's block is neither text nor an image")
)

// ParseView reads the JSON form of a view. A member that a view does not have is
// an error.
func ParseView(text []byte) (View, error) { return Defects(nil).ParseView(text) }

// ParseView is [ParseView] with the defects.
func (ds Defects) ParseView(text []byte) (View, error) {
	var v View
	err := json.Unmarshal(text, &v, json.RejectUnknownMembers(!ds.Has(UnknownMembersIgnored)))
	return v, err
}

// JSON is the view as JSON.
func (v View) JSON() []byte {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil // text that is no UTF-8; such a view is invalid
	}
	return text
}

// check says what is wrong with a view.
func (v View) check(most int) error {
	if v.Title == nil && v.Content == nil {
		return ErrEmptyView
	}
	for i := range v.Content {
		if t := v.Content[i].Type; t != BlockText && t != BlockImage {
			return fmt.Errorf("%w: %q", ErrBlock, t)
		}
	}
	text := v.JSON()
	if text == nil {
		return errors.New("a view's text is no UTF-8")
	}
	if len(text) > most {
		return fmt.Errorf("%w: %d bytes as JSON, and %d are allowed", ErrTooLarge, len(text), most)
	}
	return nil
}

// copied shares nothing with v that could be changed.
func (v View) copied() View {
	if v.Title != nil {
		title := *v.Title
		v.Title = &title
	}
	if v.Content != nil {
		v.Content = append([]Block{}, v.Content...)
	}
	return v
}

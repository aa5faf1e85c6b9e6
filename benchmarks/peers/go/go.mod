module headgate/peers

go 1.21

require quamina.net/go/quamina v1.4.0

// The module proxy has the library under the address of its repository.
replace quamina.net/go/quamina => github.com/timbray/quamina v1.4.0

job "web" {
  meta {
    note = <<EOF
      no end
  }
}

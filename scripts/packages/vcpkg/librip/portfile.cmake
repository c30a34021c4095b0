# An overlay port for vcpkg. It builds the checkout that it is in, with cargo:
#
#   vcpkg install librip --overlay-ports=scripts/packages/vcpkg
#
# Programs then use find_package(librip) and the targets librip::librip (shared) and librip::static.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)
# The library is the same in a debug build.
set(VCPKG_BUILD_TYPE release)

vcpkg_execute_required_process(
  COMMAND "${CMAKE_COMMAND}" -E env --unset=DESTDIR --unset=LIBDIR --unset=INCLUDEDIR
    "PREFIX=${CURRENT_PACKAGES_DIR}" "CARGO_TARGET_DIR=${CURRENT_BUILDTREES_DIR}/cargo"
    "${SOURCE_PATH}/scripts/install-c"
  WORKING_DIRECTORY "${SOURCE_PATH}"
  LOGNAME "install-${TARGET_TRIPLET}")

vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/librip)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-APACHE" "${SOURCE_PATH}/LICENSE-MIT")
